vcbatch job suspend train
vcbatch job suspend waits
vcbatch job suspend fails-r2
vcbatch job resume waits
vcbatch job resume train
vcbatch job resume fails-r2
vcbatch job delete train --keep-pods
vcbatch job requeue fails-r2
vcbatch job requeue fails-r2 --name waits --queue default
vcbatch job requeue train --name other
vcbatch job requeue train -q default
vcbatch job move waits-too default
vcbatch job move train nope
vcbatch job move train research
vcbatch job move train vision
vcbatch job move fails-r2 default
vcbatch job move pipeline-train default
vcbatch job move nope default
