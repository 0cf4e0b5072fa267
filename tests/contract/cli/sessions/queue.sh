vcctl queue list
vqueues
vcctl queue get -n default
vqueues -n default
vcctl queue get -n nope
vqueues --name nope
vcctl queue get
vcctl queue create
vcctl queue create -n research -w 7
vcctl queue create -n research -S Closed
vcctl queue create -n research -S Closing
vcctl queue create -n default
vcctl queue create -n ''
vcctl queue delete -n default
vcctl queue delete -n nope
vcctl queue delete
vcctl queue delete default
vcctl queue operate -n default -a open
vcctl queue operate -n default -a close
vcctl queue operate -n default -a update -w 9
vcctl queue operate -n default -a update
vcctl queue operate -n default -a stop
vcctl queue operate -n default
vcctl queue operate -a open
vcctl queue operate -n nope -a close
