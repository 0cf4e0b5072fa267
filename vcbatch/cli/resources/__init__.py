"""Commands that show and change the objects of a server: jobs, queues, flows, schedules, pods."""
