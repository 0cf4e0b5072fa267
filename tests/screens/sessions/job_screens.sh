SCREEN=80 vcbatch job describe fails-r2
SCREEN=80 vcbatch job describe train
vcbatch job describe waits-too
SCREEN=80 vcbatch job explain train
vcbatch job explain impossible
vcbatch job explain fails-r2
vcbatch job explain waits
vcbatch job explain waits-too
vcbatch job explain pipeline-train
vcbatch job explain nope
vcbatch job top
vcbatch job top waits-too
vcbatch job top nope
vcbatch job top waits -A
