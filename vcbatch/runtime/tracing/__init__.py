"""What is told of the life of jobs, of cycles and of reconciles as spans, where tracing is on."""
