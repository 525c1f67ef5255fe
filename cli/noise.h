// The noise of a robot's instruments, from a recording.
#ifndef CLI_NOISE_H
#define CLI_NOISE_H

// Prints the <noise> elements for the <network> of a robot's proxy. An exit code.
int cli_noise_fit(const char *robot, const char *path);

#endif
