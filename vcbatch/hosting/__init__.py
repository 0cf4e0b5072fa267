"""What every long-running program of vcbatch shares: supervised background tasks, and limits for its listeners."""
