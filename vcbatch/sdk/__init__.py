"""The Python SDK: the names of `import vcbatch`, for notebooks, scripts and programs."""
