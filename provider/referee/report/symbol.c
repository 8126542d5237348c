// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Symbol lookup.  dladdr(3) finds only exported symbols, of which a program
 * has few.  So the ELF symbol table (.symtab) is read from the file first, if
 * it was not stripped; dladdr(3) is the fallback.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "symbol.h"

struct image {
	const char *at;
	size_t size;
};

static bool image_map(struct image *m, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	void *at = MAP_FAILED;

	if (fd < 0)
		return false;
	if (!fstat(fd, &st) && st.st_size > (off_t)sizeof(ElfW(Ehdr)))
		at = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd,
			  0);
	close(fd);
	if (at == MAP_FAILED)
		return false;
	*m = (struct image){ at, (size_t)st.st_size };
	return true;
}

/*
 * Return the address of @count entries of @size bytes at @offset of the file,
 * or NULL if they are not within the file.
 */
static const void *image_part(const struct image *m, uint64_t offset,
			      uint64_t count, size_t size)
{
	if (offset > m->size || count > (m->size - offset) / size)
		return NULL;
	return m->at + offset;
}

static const ElfW(Shdr) * image_sections(const struct image *m, size_t *count)
{
	const ElfW(Ehdr) *eh = (const void *)m->at;

	if (memcmp(eh->e_ident, ELFMAG, SELFMAG) ||
	    eh->e_shentsize != sizeof(ElfW(Shdr)))
		return NULL;
	*count = eh->e_shnum;
	return image_part(m, eh->e_shoff, *count, sizeof(ElfW(Shdr)));
}

/*
 * Find the function at @address (of the file) in the symbol table @section,
 * and store its name and the offset.  Without one *out is kept.
 */
static void image_search(const struct image *m, const ElfW(Shdr) * section,
			 const ElfW(Shdr) * strings, uintptr_t address,
			 struct stack_frame *out)
{
	size_t i, n = section->sh_size / sizeof(ElfW(Sym));
	const ElfW(Sym) *sym =
		image_part(m, section->sh_offset, n, sizeof(*sym));
	const char *names =
		image_part(m, strings->sh_offset, strings->sh_size, 1);

	for (i = 0; sym && names && i < n; i++) {
		if ((sym[i].st_info & 0xf) != STT_FUNC ||
		    address - sym[i].st_value >= sym[i].st_size ||
		    sym[i].st_name >= strings->sh_size)
			continue;
		snprintf(out->function, sizeof(out->function), "%.*s",
			 (int)strnlen(names + sym[i].st_name,
				      strings->sh_size - sym[i].st_name),
			 names + sym[i].st_name);
		out->offset = address - sym[i].st_value;
		return;
	}
}

static void symbol_read_file(const char *path, struct stack_frame *out)
{
	const ElfW(Shdr) * section;
	size_t i, count = 0;
	struct image m;

	if (!image_map(&m, path))
		return;
	section = image_sections(&m, &count);
	for (i = 0; section && i < count; i++)
		if (section[i].sh_type == SHT_SYMTAB &&
		    section[i].sh_link < count)
			image_search(&m, &section[i],
				     &section[section[i].sh_link], out->address,
				     out);
	munmap((void *)m.at, m.size);
}

/*
 * Return the path of a module.  dladdr(3) returns argv[0] for the program,
 * which may be no path; then use that of /proc/self/exe.  The result may be a
 * static buffer.
 */
static const char *symbol_file(const char *name)
{
	static char exe[512];
	ssize_t n;

	if (strchr(name, '/') && !access(name, R_OK))
		return name;
	n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	if (n <= 0)
		return name;
	exe[n] = 0;
	return exe;
}

void symbol_find(const void *pc, struct stack_frame *out)
{
	struct link_map *map = NULL;
	Dl_info info;

	memset(out, 0, sizeof(*out));
	out->pc = pc;
	out->module = "?";
	if (!dladdr1(pc, &info, (void **)&map, RTLD_DL_LINKMAP) ||
	    !info.dli_fname)
		return;
	out->module = symbol_file(info.dli_fname);
	out->address = (uintptr_t)pc - (map ? map->l_addr : 0);
	symbol_read_file(out->module, out);
	if (!out->function[0] && info.dli_sname) {
		snprintf(out->function, sizeof(out->function), "%s",
			 info.dli_sname);
		out->offset = (uintptr_t)pc - (uintptr_t)info.dli_saddr;
	}
}
