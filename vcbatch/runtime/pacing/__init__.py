"""Work queues, delays between attempts, rate limits."""
