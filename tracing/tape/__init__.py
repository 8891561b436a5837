"""What a run recorded: records, the frames of calls, their steps and values, and what an update laid over them."""
