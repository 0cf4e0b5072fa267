vcctl job run -N mine
vcctl job run --name=mine --namespace team-a --image alpine -m 2 -r 0x3 -R cpu=500m,memory=1Gi -L cpu=1 -S other
vcctl job run -N mine -R '' -L ''
vcctl job run
vcctl job run -N finished
vcctl job run -N mine -R cpu
vcctl job run -N mine -L cpu=much
vcctl job run -f files/job.yaml
vcctl job run -f files/job.yaml -n team-a
vcctl job run -f files/job.yaml -n default
vcctl job run -f files/job-of-team-b.yaml
vcctl job run -f files/job-of-team-b.yaml --namespace default
vcctl job run -f files/two-jobs.yaml
vcctl job run -f files/flows.yaml
vcctl job run -f files/nothing.yaml
vcctl job run -f files/broken.yaml
vcctl job run -f files/nowhere.yaml
vsub -n mine
vsub -n mine -N team-a -i alpine -c 'sh -c "echo $HOME; sleep 1" # twice'
VOLCANO_SCHEDULER_NAME=mine VOLCANO_DEFAULT_IMAGE=python VOLCANO_DEFAULT_JOB_NAMESPACE=team-a vsub -n from-environment
VOLCANO_DEFAULT_IMAGE=python VOLCANO_DEFAULT_JOB_NAMESPACE=team-a vsub -n flags-win -i alpine -N default -S volcano
vsub -n mine -c "echo 'never closed"
vsub
