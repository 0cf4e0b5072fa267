vcbatch job get waits -o yaml
vcbatch job get waits -o json
vcbatch job list -q speech -o json
