SCREEN=80 vcbatch job list
SCREEN=80 NO_COLOR=1 vcbatch job list
SCREEN=40 TERM=dumb vcbatch job list
vcbatch job list
vcbatch job list -A -o wide
vcbatch job list --no-headers -q vision
vcbatch job list --phase failed --phase aborted
vcbatch job list -n nowhere
vcbatch job list -l volcano.sh/createdByJobFlow=default.pipeline
vcbatch job list --field-selector metadata.name=train -o name
vcbatch job list --sort-by .metadata.creationTimestamp -o name
vcbatch job list -o 'jsonpath={range .items[*]}{.metadata.name}={.status.state.phase}{"\n"}{end}'
vcbatch job list -o 'custom-columns=NAME:.metadata.name,TASKS:.spec.tasks[*].name,WHERE:.spec.nowhere'
vcbatch job get waits
vcbatch job get waits train -o name
vcbatch job get waits -o jsonpath='{.metadata.name}'
vcbatch job get nope
vcbatch job list -o xml
vcbatch job list -o jsonpath
vcbatch job list -o 'jsonpath={.items[}'
vcbatch job list -o custom-columns=NAME
vcbatch job list -w --sort-by .metadata.name
vcbatch job get a b -w
