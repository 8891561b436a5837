"""How two traces differ."""
