"""Python functions that run as jobs: `@task`, their calls as files, and their results."""
