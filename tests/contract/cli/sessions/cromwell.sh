# As Cromwell's configuration has them: submit, check-alive and kill, of a job that is there and of one that isn't.
vcctl job run -f files/4711.yaml
vcctl job view -N finished
vcctl job delete -N finished
vcctl job view -N 4711
vcctl job delete -N 4711
