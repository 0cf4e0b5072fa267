"""What is kept up to date pod by pod: terms between pods, volumes, cpus, devices, victims, demand, shards."""
