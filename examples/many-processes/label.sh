#!/bin/sh
# The program of the worker: the message of the task is its stdin.
printf 'label for %s' "$(cat)"
