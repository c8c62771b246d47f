"""BASIC scripts.

The language, its keywords and the runs of scripts; README.md describes the parts. Other rooms import what this
package exports.
"""
