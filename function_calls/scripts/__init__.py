"""Runs of BASIC scripts: what the machine wants is carried out here, with the rights of whoever called the script."""
