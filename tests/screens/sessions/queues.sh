SCREEN=80 vcbatch queue list
vcbatch queue list -o wide
vcbatch queue get vision -o name
SCREEN=80 vcbatch queue describe vision
vcbatch queue describe research
vcbatch queue describe nope
SCREEN=80 vcbatch queue tree
vcbatch queue tree --resource memory
vcbatch queue tree --resource example.com/unicorn
vcbatch queue open vision
vcbatch queue close vision
vcbatch queue close root
vcbatch queue create x --parent research --weight 2 --capability cpu=4,memory=1Gi --deserved cpu=2 --guarantee cpu=1 --priority 5 --not-reclaimable
vcbatch queue create y --capability cpu4
vcbatch queue create vision
vcbatch queue delete vision
