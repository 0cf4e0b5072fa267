SCREEN=80 vcbatch cronjob list
vcbatch cronjob describe nightly
vcbatch cronjob preview nightly -c 3
vcbatch cronjob preview --schedule '30 1 31 10 *' --time-zone Europe/Berlin -c 2
vcbatch cronjob preview --schedule '30 * 29 3 *' --time-zone Europe/Berlin -c 4
vcbatch cronjob preview --schedule '@every 90s' -c 2
vcbatch cronjob preview --schedule '0 0 31 2 *'
vcbatch cronjob preview --schedule '5 minutes'
vcbatch cronjob preview
vcbatch cronjob preview nightly --time-zone UTC
vcbatch cronjob trigger nightly --name by-hand
vcbatch cronjob suspend nightly
vcbatch cronjob resume nightly
vcbatch pod list -j waits-too
SCREEN=80 vcbatch pod list -j waits-too -o wide
vcbatch pod list -t w -q vision -o name
vcbatch pod get waits-too-w-0
SCREEN=80 vcbatch pod describe waits-too-w-0
SCREEN=80 vcbatch pod describe fails-r2-w-0
vcbatch pod describe nope
vcbatch hypernode list
vcbatch hypernode tree
SCREEN=80 vcbatch cluster
