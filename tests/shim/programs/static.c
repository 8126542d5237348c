// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* A statically linked program, in which preload libraries have no effect. */
int main(void)
{
	return 0;
}
