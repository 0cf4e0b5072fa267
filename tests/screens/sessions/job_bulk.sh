vcbatch cancel --phase pending --dry-run
vcbatch cancel --phase pending --yes
vcbatch job delete -q vision --older-than 30m --dry-run
vcbatch job delete -q vision --older-than 7d --yes
vcbatch job delete --all
vcbatch job delete
vcbatch job delete train --all
SCREEN=80 vcbatch ps --mine
SCREEN=80 vcbatch ps --since 5m
SCREEN=80 vcbatch ps -A
SCREEN=80 vcbatch -n default ps -q vision
vcbatch -n default down
