// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* A program that no preload library reaches. */
int main(void)
{
	return 0;
}
