SCREEN=80 vcbatch job explain small
SCREEN=80 vcbatch job explain large
vcbatch job explain huge
DENIED=leases vcbatch job explain new
DENIED=leases vcbatch job explain small -o json
DENIED=leases vcbatch job explain large -o json
SCREEN=80 vcbatch queue describe line
