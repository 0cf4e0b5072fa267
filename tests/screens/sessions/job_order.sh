SCREEN=80 vcbatch job explain train
vcbatch job explain train -o json
SCREEN=80 vcbatch job explain sweep --scheduler-lease volcano-system/away
SCREEN=80 vcbatch job explain sweep --scheduler-lease volcano-system/second
vcbatch job explain crawl --scheduler-configmap volcano-system/capacity
vcbatch job explain sweep --scheduler-configmap volcano-system/capacity --scheduler-name other
DENIED=pods vcbatch job explain train --scheduler-configmap volcano-system/capacity
SCREEN=80 DENIED=leases vcbatch job explain train
vcbatch job explain waits-too -o json
vcbatch job explain train --scheduler-configmap volcano-system/mistyped
vcbatch job explain train --scheduler-configmap nowhere/none
vcbatch job explain train --scheduler-lease nowhere/none
vcbatch job explain train --scheduler-configmap volcano-system/capacity --policy README.md
SCREEN=80 vcbatch queue describe vision
DENIED=leases vcbatch queue describe vision
