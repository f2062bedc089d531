/*
 * Inside the guest: when FILE COMMAND… runs a command and writes to FILE when it ended, in nanoseconds of the clock that guest.c
 * stamps with. It takes a tenth of a second there to start a program, and hardly any time to end one: what `tc` made is as old as its end.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void die(const char *what)
{
	perror(what);
	exit(1);
}

int main(int count, char **arg)
{
	struct timespec t;
	int status;
	if (count < 3)
		return 2;
	pid_t command = vfork();
	if (command < 0)
		die("vfork");
	if (command == 0) {
		execvp(arg[2], arg + 2);
		_exit(127);
	}
	if (waitpid(command, &status, 0) < 0 || clock_gettime(CLOCK_REALTIME, &t))
		die(arg[2]);
	if (!WIFEXITED(status) || WEXITSTATUS(status))
		return 1;
	FILE *file = fopen(arg[1], "w");
	if (!file || fprintf(file, "%lld%09ld\n", (long long)t.tv_sec, t.tv_nsec) < 0 || fclose(file))
		die(arg[1]);
	return 0;
}
