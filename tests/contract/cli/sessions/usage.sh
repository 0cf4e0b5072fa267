vcctl
vcctl -h
vcctl help
vcctl help job
vcctl help queue operate
vcctl help nope
vcctl version
vcctl nope
vcctl jobs
vcctl job
vcctl job --help
vcctl job lst
vcctl job run -h
vcctl job list --help
vcctl queue create -h
vcctl jobflow -h
vcctl jobtemplate delete -h
vcctl pod list -h
vcctl -n team-a job list
vcctl job list --bad
vcctl job list -x
vcctl job list -n
vcctl job list --namespace
vcctl job list --all-namespaces=perhaps
vcctl job list --all-namespaces=false
vcctl job list --all_namespaces --selector=held
vcctl job list stray
vcctl job run -m many
vcctl queue create -w 2147483648
vcctl job list ---
vsub -h
vjobs -h
vjobs --bad
vjobs stray
vcancel -h
vcancel -n
vsuspend --help
vresume --help
vqueues -h
vqueues -z
VCCTL_ERRORS=stderr vcctl job delete -N nope
VCCTL_ERRORS=stderr vcctl job list -s ftp://server
vcctl job list -k files/nowhere.yaml
vcctl job list --context nope
