"""CmdStan's command line for a model: arguments, methods, files (CmdStan guide)."""
