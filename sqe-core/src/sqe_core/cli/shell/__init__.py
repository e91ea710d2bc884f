"""The prompt and what stands behind it: statements run, results shown, commands carried out."""
