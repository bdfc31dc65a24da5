/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/config.h"
#include "ctdb-events/smbconf_conf.h"
#include "ctdb-events/smbconf_samba.h"

const char *conf_file(void)
{
	const char *path = getenv("SMB_CONF_PATH");

	return path != NULL && path[0] != '\0' ? path : SMB_CONF;
}

/* ---- what lp_dump() prints ---------------------------------------------- */

static json_t *text(const char *value)
{
	json_t *string = json_string(value);
	char *copy = NULL, *p = NULL;

	if (string != NULL) {
		return string;
	}
	copy = strdup(value);
	for (p = copy; p != NULL && *p != '\0'; p++) {
		if ((*p & 0x80) != 0) {
			*p = '?';
		}
	}
	string = copy != NULL ? json_string(copy) : NULL;
	free(copy);
	return string;
}

static bool dump_section(struct conf *conf, char *line, json_t **params)
{
	char *end = strrchr(line, ']');
	json_t *service = NULL;
	int ret;

	if (end == NULL) {
		return true;
	}
	*end = '\0';
	if (strcmp(line + 1, "global") == 0) {
		*params = conf->global;
		return true;
	}
	*params = json_object();
	service = json_pack("{so*, so*}", "name", text(line + 1), "own",
			    *params);
	ret = json_array_append_new(conf->services, service);
	return ret == 0 && json_object_size(service) == 2;
}

static bool dump_parameter(char *line, json_t *params)
{
	char *value = strstr(line, " = ");
	char *p = NULL;
	int ret;

	if (value == NULL) {
		return true;
	}
	*value = '\0';
	value += strlen(" = ");
	for (p = line; *p != '\0'; p++) {
		*p = (char)tolower((unsigned char)*p);
	}
	/* what has no valid name is nothing that anybody asks for */
	if (json_object_get(params, line) == NULL) {
		json_t *name = json_string(line);

		if (name == NULL) {
			return true;
		}
		json_decref(name);
	}
	ret = json_object_set_new(params, line, text(value));
	return ret == 0;
}

static bool read_dump(struct conf *conf, char *dump)
{
	json_t *params = NULL;
	char *line = NULL, *save = NULL;
	bool ok = true;

	for (line = strtok_r(dump, "\n", &save); ok && line != NULL;
	     line = strtok_r(NULL, "\n", &save)) {
		if (line[0] == '[') {
			ok = dump_section(conf, line, &params);
		} else if (line[0] == '\t' && params != NULL) {
			ok = dump_parameter(line + 1, params);
		}
	}
	return ok;
}

static bool dump_all(struct conf *conf)
{
	char *dump = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&dump, &len);
	bool ok;
	int ret;

	if (f == NULL) {
		return false;
	}
	lp_dump(f, true, lp_numservices());
	ret = fclose(f);
	ok = ret == 0 && read_dump(conf, dump);
	free(dump);
	return ok;
}

/* ---- [global] of smb.conf itself ---------------------------------------- */

static void look_at_includes(struct conf *conf,
			     const struct smbconf_service *service,
			     const char *ours)
{
	bool first = true;
	uint32_t i;

	for (i = 0; i < service->num_params; i++) {
		const char *name = service->param_names[i];
		const char *value = service->param_values[i];
		bool include = strcasecmp(name, "include") == 0;
		bool backend = strcasecmp(name, "config backend") == 0;

		if (include && strcmp(value, ours) == 0) {
			conf->includes_ours = true;
			conf->ours_comes_first = first;
		}
		if ((include || backend) &&
		    strcasecmp(value, "registry") == 0) {
			conf->includes_registry = true;
			first = false;
		}
	}
}

static bool read_own_global(struct conf *conf, const char *ours)
{
	struct smbconf_service **services = NULL;
	struct smbconf_ctx *ctx = NULL;
	char *source = talloc_asprintf(conf, "file:%s", conf->file);
	uint32_t num = 0, i;
	sbcErr err;

	if (source == NULL) {
		return false;
	}
	err = smbconf_init(conf, &ctx, source);
	if (!SBC_ERROR_IS_OK(err)) {
		return false;
	}
	err = smbconf_get_config(ctx, conf, &num, &services);
	for (i = 0; SBC_ERROR_IS_OK(err) && i < num; i++) {
		const char *name = services[i]->name;

		/* what stands before any section is global, too */
		if (name == NULL || strcasecmp(name, "global") == 0) {
			look_at_includes(conf, services[i], ours);
		}
	}
	smbconf_shutdown(ctx);
	return SBC_ERROR_IS_OK(err);
}

/* ---- all of it ---------------------------------------------------------- */

static int conf_destructor(struct conf *conf)
{
	json_decref(conf->global);
	json_decref(conf->services);
	return 0;
}

static bool load(struct conf *conf, const char *ours, const char **why)
{
	const char *backend = NULL;
	bool ok;

	ok = read_own_global(conf, ours);
	if (ok) {
		ok = lp_load_with_registry_shares(conf->file);
	}
	if (!ok) {
		*why = talloc_asprintf(conf, "'%s', or what it includes, "
				       "cannot be read or is malformed: see "
				       "testparm -s", conf->file);
		return false;
	}
	conf->global = json_object();
	conf->services = json_array();
	ok = conf->global != NULL && conf->services != NULL &&
	     dump_all(conf);
	if (!ok) {
		*why = "no memory";
		return false;
	}
	backend = conf_global(conf, "config backend");
	if (strcasecmp(backend, "registry") == 0) {
		conf->source = CONF_REGISTRY;
	} else if (conf_is_yes(conf_global(conf, "registry shares"))) {
		conf->source = CONF_BOTH;
	}
	return true;
}

bool conf_load(TALLOC_CTX *mem_ctx, const char *ours, struct conf **out,
	       const char **why)
{
	struct conf *conf = talloc_zero(mem_ctx, struct conf);
	TALLOC_CTX *frame = _talloc_stackframe(__func__);
	bool ok;

	*why = "no memory";
	if (conf == NULL) {
		talloc_free(frame);
		return false;
	}
	talloc_set_destructor(conf, conf_destructor);
	conf->file = conf_file();
	ok = load(conf, ours, why);
	talloc_free(frame);
	*out = conf;
	return ok;
}

const char *conf_global(const struct conf *conf, const char *name)
{
	const char *value =
		json_string_value(json_object_get(conf->global, name));

	return value != NULL ? value : "";
}

const char *conf_service(const struct conf *conf, json_t *service,
			 const char *name)
{
	const char *value = json_string_value(
		json_object_get(json_object_get(service, "own"), name));

	return value != NULL ? value : conf_global(conf, name);
}

bool conf_is_yes(const char *value)
{
	return strcasecmp(value, "yes") == 0;
}
