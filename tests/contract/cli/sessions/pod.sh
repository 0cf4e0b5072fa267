vcctl pod list
vcctl pod list -n team-a
vcctl pod list --all-namespaces
vcctl pod list -j finished
vcctl pod list -j finished -q default
vcctl pod list -j finished -q other
vcctl pod list -q default
vcctl pod list -q default --all-namespaces
vcctl pod list -j nope
vcctl pod list -n nobody
vcctl pod list -j a,b
