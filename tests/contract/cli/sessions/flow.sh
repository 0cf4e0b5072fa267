vcctl jobflow list
vcctl jobflow list -n team-a
vcctl jobflow list --all-namespaces
vcctl jobflow list -n nobody
vcctl jobflow get -N f
vcctl jobflow get -N nope
vcctl jobflow get
vcctl jobflow describe -N early -n team-a
vcctl jobflow describe -N early -n team-a -o json
vcctl jobflow describe -n nobody
vcctl jobflow describe -N f -o xml
vcctl jobflow describe -N nope
vcctl jobflow create -f files/flows.yaml
vcctl jobflow create -f files/flow-with-dashes.yaml
vcctl jobflow create
vcctl jobflow create -f files/nowhere.yaml
vcctl jobflow create -f files/templates.yaml
vcctl jobflow delete -N f
vcctl jobflow delete -N early -n team-a
vcctl jobflow delete -N nope
vcctl jobflow delete -f files/flows.yaml
vcctl jobflow delete
vcctl jobtemplate list
vcctl jobtemplate list -n team-a
vcctl jobtemplate get -N a
vcctl jobtemplate get
vcctl jobtemplate describe
vcctl jobtemplate describe -N a --format=json
vcctl jobtemplate create --file files/templates.yaml
vcctl jobtemplate delete -N a
vcctl jobtemplate delete -f files/templates.yaml
vcctl jobtemplate delete
