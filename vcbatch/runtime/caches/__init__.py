"""What was last seen of the cluster, kept equal to the server by watches."""
