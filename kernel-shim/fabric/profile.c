// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Reading profiles.  A line of a profile is a key, its value, and optionally
 * the errno value of verbs that are refused because of it:
 *
 *	max_sge    30  EINVAL    # comment
 *	qp_types   RC UD         # names
 *	fw_ver     28.39.1002
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fabric.h"
#include "internal.h"
#include "profile.h"

#define MOST_BYTES 65536 /* of the text of a profile */

void profile_init(struct urxe_profile *p)
{
	unsigned int i;

	memset(p, 0, sizeof(*p));
	strcpy(p->fw_ver, "1.0.0");
	for (i = 0; i < PROFILE_KEYS_COUNT; i++)
		p->value[i] = profile_keys[i].own;
}

int line_split(struct line *l, char *text)
{
	char *rest;

	text[strcspn(text, "#")] = '\0';
	l->n = 0;
	for (text = strtok_r(text, " \t\r", &rest); text;
	     text = strtok_r(NULL, " \t\r", &rest)) {
		if (l->n == LINE_WORDS)
			return fabric_fail(EINVAL, "more than %d words",
					   LINE_WORDS);
		l->word[l->n++] = text;
	}
	return 0;
}

/* The errno values that a profile may name. */
static const struct {
	const char *name;
	uint8_t value;
} errors[] = {
	{ "EINVAL", EINVAL }, { "ENOMEM", ENOMEM },
	{ "ENOSPC", ENOSPC }, { "ENOSYS", ENOSYS },
	{ "EPERM", EPERM },   { "EOPNOTSUPP", EOPNOTSUPP },
	{ "E2BIG", E2BIG },   { "EBUSY", EBUSY },
};
#define ERRORS (sizeof(errors) / sizeof(*errors))

/* Return the errno value with that name, or 0. */
static uint8_t error_find(const char *name)
{
	unsigned int i;

	for (i = 0; i < ERRORS; i++)
		if (!strcmp(name, errors[i].name))
			return errors[i].value;
	return 0;
}

const char *profile_error_name(uint8_t error)
{
	unsigned int i;

	for (i = 0; i < ERRORS; i++)
		if (error == errors[i].value)
			return errors[i].name;
	return NULL;
}

int profile_error(const struct urxe_profile *p, enum profile_key key, int own)
{
	return profile_error_name(p->error[key]) ? p->error[key] : own;
}

int word_number(const char *word, uint64_t *value)
{
	char *end;

	errno = 0;
	*value = strtoull(word, &end, strncmp(word, "0x", 2) ? 10 : 16);
	if (!isdigit((unsigned char)*word) || *end || errno)
		return fabric_fail(EINVAL, "\"%s\" is not a number", word);
	return 0;
}

static int name_parse(enum profile_key key, const char *word, uint64_t *bits)
{
	const struct profile_name *n;

	for (n = profile_names; n->name; n++) {
		if (n->key != key || strcmp(n->name, word))
			continue;
		*bits |= n->bits;
		return 0;
	}
	return fabric_fail(EINVAL, "\"%s\" is not a name of %s", word,
			   profile_keys[key].name);
}

static int value_parse(struct urxe_profile *p, enum profile_key key,
		       const struct line *l)
{
	const bool names = profile_keys[key].kind == PROFILE_NAMES;
	const uint8_t error = l->n > 1 ? error_find(l->word[l->n - 1]) : 0;
	const unsigned int n = l->n - (error ? 1 : 0);
	uint64_t value = 0;
	unsigned int i;
	int ret = 0;

	if (!names && n != 2)
		return fabric_fail(EINVAL, "%s needs one number", l->word[0]);
	for (i = 1; i < n && !ret; i++)
		ret = names ? name_parse(key, l->word[i], &value) :
			      word_number(l->word[i], &value);
	p->value[key] = value;
	p->error[key] = error;
	if (!ret && value > profile_keys[key].most)
		return fabric_fail(EINVAL, "%s must be at most %llu",
				   l->word[0],
				   (unsigned long long)profile_keys[key].most);
	return ret;
}

static int text_parse(char *to, size_t room, const struct line *l)
{
	if (l->n != 2 || strlen(l->word[1]) >= room)
		return fabric_fail(EINVAL,
				   "%s needs one word of less than %zu bytes",
				   l->word[0], room);
	strcpy(to, l->word[1]);
	return 0;
}

static int line_parse(struct urxe_profile *p, const struct line *l)
{
	unsigned int i;

	if (!strcmp(l->word[0], "fw_ver"))
		return text_parse(p->fw_ver, sizeof(p->fw_ver), l);
	if (!strcmp(l->word[0], "board_id"))
		return text_parse(p->board_id, sizeof(p->board_id), l);
	for (i = 0; i < PROFILE_KEYS_COUNT; i++)
		if (!strcmp(l->word[0], profile_keys[i].name))
			return value_parse(p, i, l);
	return fabric_fail(EINVAL, "unknown key \"%s\"", l->word[0]);
}

/* Check values that depend on each other. */
static int profile_check(const struct urxe_profile *p)
{
	const uint64_t *value = p->value;

	if (!(value[PROFILE_gid_types] & 1u << URXE_ROCE_V2))
		return fabric_fail(EINVAL,
				   "profile %s: gid_types must have ROCE_V2",
				   p->name);
	if (value[PROFILE_gid_tbl_len] < 2)
		return fabric_fail(EINVAL,
				   "profile %s: gid_tbl_len must be at least 2",
				   p->name);
	if (value[PROFILE_active_mtu] > value[PROFILE_max_mtu] ||
	    value[PROFILE_active_mtu] < 256)
		return fabric_fail(
			EINVAL, "profile %s: active_mtu must be 256 to max_mtu",
			p->name);
	return 0;
}

int profile_parse(struct urxe_profile *p, char *text)
{
	char reason[128], *next;
	unsigned int number;
	struct line l;
	int ret;

	for (number = 1; text; number++, text = next) {
		next = strchr(text, '\n');
		if (next)
			*next++ = '\0';
		ret = line_split(&l, text);
		if (!ret && l.n)
			ret = line_parse(p, &l);
		if (!ret)
			continue;
		snprintf(reason, sizeof(reason), "%s", fabric_why());
		return fabric_fail(-ret, "profile %s, line %u: %s", p->name,
				   number, reason);
	}
	return profile_check(p);
}

/* Set p->name to the file name without directory and suffix. */
static int name_set(struct urxe_profile *p, const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *base = slash ? slash + 1 : path;
	size_t n = strlen(base);

	if (n > strlen(PROFILE_SUFFIX) &&
	    !strcmp(base + n - strlen(PROFILE_SUFFIX), PROFILE_SUFFIX))
		n -= strlen(PROFILE_SUFFIX);
	if (!n || n >= sizeof(p->name))
		return fabric_fail(EINVAL,
				   "%s: the name must have 1 to %zu bytes",
				   path, sizeof(p->name) - 1);
	memset(p->name, 0, sizeof(p->name));
	memcpy(p->name, base, n);
	return 0;
}

/* Read a regular file, at most @most bytes.  The number of bytes or -errno */
static ssize_t file_load(const char *path, char *text, size_t most)
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat st;
	ssize_t n = 0;
	size_t all = 0;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st))
		n = -1;
	else if (!S_ISREG(st.st_mode)) {
		errno = EINVAL;
		n = -1;
	}
	while (n >= 0 && all < most) {
		n = read(fd, text + all, most - all);
		if (n <= 0)
			break;
		all += (size_t)n;
	}
	if (n < 0)
		n = -errno;
	close(fd);
	return n < 0 ? n : (ssize_t)all;
}

int text_read(const char *path, const char *what, char *text, size_t most)
{
	const ssize_t n = file_load(path, text, most);

	if (n < 0)
		return fabric_fail((int)-n, "%s %s: %s", what, path,
				   n == -EINVAL ? "not a regular file" :
						  strerror((int)-n));
	if ((size_t)n == most)
		return fabric_fail(EFBIG, "%s %s: %s", what, path,
				   strerror(EFBIG));
	text[n] = '\0';
	if (memchr(text, '\0', (size_t)n))
		return fabric_fail(EINVAL, "%s %s is not a text file", what,
				   path);
	return 0;
}

int profile_read(struct urxe_profile *p, const char *word)
{
	const char *dir = getenv("URXE_PROFILE_DIR");
	char path[PATH_MAX], *text;
	int n, ret;

	if (strchr(word, '/'))
		n = snprintf(path, sizeof(path), "%s", word);
	else
		n = snprintf(path, sizeof(path), "%s/%s" PROFILE_SUFFIX,
			     dir && *dir ? dir : URXE_PROFILE_DIR, word);
	if (n < 0 || (size_t)n >= sizeof(path))
		return fabric_fail(EINVAL, "profile: the name is too long");
	profile_init(p);
	ret = name_set(p, path);
	if (ret)
		return ret;
	text = malloc(MOST_BYTES + 1);
	if (!text)
		return -ENOMEM;
	ret = text_read(path, "profile", text, MOST_BYTES);
	if (!ret)
		ret = profile_parse(p, text);
	free(text);
	return ret;
}

int profile_by_env(struct urxe_profile *p, uint32_t k)
{
	const char *word = getenv("URXE_PROFILE");
	char name[PATH_MAX];

	profile_init(p);
	if (!word || !*word)
		return 0;
	if (!hca_word(word, k, name, sizeof(name)))
		return fabric_fail(
			EINVAL,
			"URXE_PROFILE must be names or files, separated by commas");
	return profile_read(p, name);
}

static void text_copy(char *to, const char *from, size_t room)
{
	memcpy(to, from, room);
	to[room - 1] = '\0';
}

void profile_copy(struct urxe_profile *to, const struct urxe_profile *from)
{
	const struct profile_key_info *key;
	unsigned int i;

	text_copy(to->name, from->name, sizeof(to->name));
	text_copy(to->fw_ver, from->fw_ver, sizeof(to->fw_ver));
	text_copy(to->board_id, from->board_id, sizeof(to->board_id));
	for (i = 0; i < PROFILE_KEYS_COUNT; i++) {
		key = &profile_keys[i];
		to->value[i] = from->value[i];
		to->error[i] = from->error[i];
		if (key->kind == PROFILE_LIMIT && to->value[i] > key->own)
			to->value[i] = key->own;
		if (to->value[i] > key->most)
			to->value[i] = key->most;
	}
	if (!(to->value[PROFILE_gid_types] & 1u << URXE_ROCE_V1) &&
	    to->value[PROFILE_gid_tbl_len] > URXE_GID_ROWS)
		to->value[PROFILE_gid_tbl_len] = URXE_GID_ROWS;
	if (to->value[PROFILE_active_mtu] > to->value[PROFILE_max_mtu])
		to->value[PROFILE_active_mtu] = to->value[PROFILE_max_mtu];
}
