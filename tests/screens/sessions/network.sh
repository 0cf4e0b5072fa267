vcbatch hypernode list
SCREEN=80 vcbatch hypernode list -o wide
SCREEN=80 vcbatch hypernode tree
DENIED=nodes,pods vcbatch hypernode tree
SCREEN=80 vcbatch hypernode describe spine-0
SCREEN=80 vcbatch hypernode describe leaf-0
vcbatch hypernode describe leaf-1
vcbatch hypernode describe nope
vcbatch hypernode get leaf-0 -o name
SCREEN=80 vcbatch cluster
