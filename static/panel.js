// Entry module.
