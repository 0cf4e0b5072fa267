vcctl job list
vcctl job list -n team-a
vcctl job list --all-namespaces
vcctl job list --namespace=nobody
vcctl job list -q default --selector wait
vcctl job list -q other
vcctl job list -S volcano --selector=held
vcctl job list -n of-the-context
vjobs
vjobs -N team-a
vjobs --all-namespaces --selector t
vcctl job view -N finished
vcctl job view -N with-plugins
vcctl job view -N held
vcctl job view -n team-a -N mpi
vjobs -n waiting
vjobs -n partial -N team-a
vcctl job view
vcctl job view -N nope
vjobs -n nope
# -n is the namespace here, and the name in the other programs
vcctl job view -n held
vcctl job delete -N finished
vcctl job delete -nteam-a -Nmpi
vcctl job delete -N nope
vcctl job delete
vcancel -n finished
vcancel -n mpi -N team-a
vcancel
vcctl job suspend -N with-plugins
vcctl job suspend -N nope
vcctl job suspend
vcctl job resume -N held -n default
vcctl job resume
vsuspend -n with-plugins
vsuspend --name mpi --namespace team-a
vsuspend
vresume -n held
vresume
