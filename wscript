# SPDX-License-Identifier: GPL-3.0-or-later
#
# The build, for waf (see ./waf). Sources are found by their place in the tree,
# so that a new file needs no line here.

import os
import sys

from waflib import Build, Configure, Context, Logs, Task, TaskGen, Utils

sys.path.insert(0, os.path.abspath('buildtools'))
import samba_headers

APPNAME = 'pingpong'
VERSION = '0.1'
top = '.'

Configure.autoconfig = True

# libpingpong is a static library: who links it names what it stands on, too
CORE = 'pingpong TALLOC TEVENT JANSSON M'

EVENTS_DIR = '${CTDB_DATADIR}/events/legacy'
OPTIONS_DIR = '${SYSCONFDIR}/ctdb/events/legacy'
XSLT_OPTIONS = ' '.join([
    '--nonet',
    '--param man.output.quietly 1',
    '--param refentry.meta.get.quietly 1',
    '--output ${TGT[0].parent.abspath()}/',
    '/usr/share/xml/docbook/stylesheet/docbook-xsl/manpages/docbook.xsl',
])


def options(opt):
    opt.load('compiler_c')
    opt.parser.set_defaults(prefix='/usr')
    features = opt.add_option_group('Features')
    features.add_option('--without-vfs', action='store_true',
                        help='leave out the Samba VFS module')
    features.add_option('--without-ctdb', action='store_true',
                        help='leave out all of CTDB: the event script, the '
                             'resident agent and pingpong-smbconf')
    features.add_option('--without-smbconf', action='store_true',
                        help='leave out pingpong-smbconf, which reads and '
                             'writes the configuration of Samba')
    features.add_option('--sanitize', action='store_true',
                        help='address and undefined behaviour sanitizers, in '
                             'build-asan; name it with every command. Leaves '
                             'out the VFS module, which smbd could not load')
    opt.add_option('--matrix', action='store_true',
                   help='test: only the table of faults and checks')


def configure(conf):
    conf.load('compiler_c')
    opts = conf.options
    env = conf.env

    env.SYSCONFDIR = '/etc'
    env.CTDB_DATADIR = '/usr/share/ctdb'
    env.LIBEXECDIR = env.PREFIX + '/libexec/pingpong'
    env.MANDIR = env.PREFIX + '/share/man'
    env.DOCDIR = env.PREFIX + '/share/doc/pingpong'

    library(conf, 'm', 'math.h')
    library(conf, 'talloc', 'talloc.h')
    library(conf, 'tevent', 'talloc.h tevent.h')
    library(conf, 'jansson', 'jansson.h')
    library(conf, 'popt', 'popt.h')

    env.WITH_CTDB = not opts.without_ctdb
    env.EVENTS = ''
    if env.WITH_CTDB:
        library(conf, 'gnutls', 'gnutls/gnutls.h',
                errmsg='not found (needed unless --without-ctdb)')
        conf.define('HAVE_CTDB_EVENTS', 1)
        env.EVENTS = 'ctdb-events GNUTLS '
    env.WITH_VFS = not opts.without_vfs and not opts.sanitize
    env.WITH_SMBCONF = env.WITH_CTDB and not opts.without_smbconf
    if env.WITH_VFS or env.WITH_SMBCONF:
        configure_samba(conf)
    if env.WITH_SMBCONF:
        library(conf, 'smbconf', 'stdint.h stdbool.h talloc.h smbconf.h',
                lib=['smbconf', 'samba-util'],
                includes=['/usr/include/samba-4.0'],
                linkflags=['-Wl,-rpath-link,' + env.MODULESDIR],
                errmsg='not found (needed unless --without-smbconf)')

    # what is missing here leaves out tests or manual pages, not more
    library(conf, 'cmocka', 'stdarg.h stddef.h stdint.h setjmp.h cmocka.h',
            mandatory=False)
    conf.check_cfg(package='fuse3', args='--cflags --libs',
                   uselib_store='FUSE3', mandatory=False)
    conf.find_program('xsltproc', mandatory=False)

    compiler_flags(conf)

    conf.define('PINGPONG_VERSION', VERSION)
    conf.define('LIBEXECDIR', env.LIBEXECDIR)
    conf.define('STATEDIR', '/var/lib/pingpong')
    conf.define('RUNDIR', '/run/pingpong')
    conf.write_config_header('core/config.h')


def library(conf, name, headers, **more):
    more.setdefault('lib', name)
    conf.check_cc(header_name=headers, uselib_store=name.upper(),
                  msg='Checking for ' + name, **more)


def compiler_flags(conf):
    """After the checks, which would not all compile with these."""
    flags = ['-std=gnu11', '-g', '-O2', '-Wall', '-Wextra', '-Werror']
    if conf.options.sanitize:
        sanitize = ['-fsanitize=address,undefined',
                    '-fno-sanitize-recover=all']
        flags += sanitize + ['-fno-omit-frame-pointer']
        conf.env.append_value('LINKFLAGS', sanitize)
    else:
        flags += ['-U_FORTIFY_SOURCE', '-D_FORTIFY_SOURCE=2',
                  '-fstack-protector-strong']
    # what the environment says (CFLAGS) comes last
    conf.env.prepend_value('CFLAGS', flags)
    conf.env.append_value('DEFINES',
                          ['_GNU_SOURCE=1', '_FILE_OFFSET_BITS=64'])
    conf.env.prepend_value('LINKFLAGS', ['-Wl,--as-needed', '-Wl,-z,relro',
                                         '-Wl,-z,now'])


def configure_samba(conf):
    """The installed smbd, and for the module the source it was made of."""
    env = conf.env
    conf.find_program('smbd', path_list=os.environ['PATH'].split(':')
                      + ['/usr/sbin'],
                      errmsg='not found (needed unless --without-vfs and '
                             '--without-ctdb)')
    for line in conf.cmd_and_log(env.SMBD + ['-b']).splitlines():
        name, _, value = line.strip().partition(': ')
        if name == 'MODULESDIR':
            env.MODULESDIR = value
        elif name == 'CONFIGFILE':
            conf.define('SMB_CONF', value)
    conf.msg("Samba's modules directory", env.MODULESDIR)
    if not env.WITH_VFS:
        return

    source = os.environ.get('SAMBA_SOURCE')
    if not source:
        conf.fatal('the VFS module needs SAMBA_SOURCE, a configured Samba '
                   'source (./bootstrap makes it), or --without-vfs')
    env.SAMBA_SOURCE = source
    version = {}
    with open(source + '/VERSION') as file:
        for line in file:
            name, _, value = line.strip().partition('=')
            version[name] = value
    have = '.'.join(version['SAMBA_VERSION_' + part]
                    for part in ('MAJOR', 'MINOR', 'RELEASE'))
    want = conf.cmd_and_log(env.SMBD + ['-V']).split()[-1].split('-')[0]
    conf.msg('Samba source and installed smbd', have + ', ' + want)
    if have != want:
        conf.fatal('%s is the source of Samba %s; smbd, which is %s, would '
                   'not load its module' % (source, have, want))

    conf.define('SAMBA_SERIES', have.rpartition('.')[0])
    env.HEADERS_DIR = conf.bldnode.make_node('samba-headers').abspath()
    env.DEFINES_SAMBA = samba_headers.DEFINES
    # as system headers: their warnings are not ours to mend
    for path in samba_headers.include_dirs(source, env.HEADERS_DIR):
        env.append_value('CFLAGS_SAMBA', ['-isystem', path])


def build(bld):
    build_core(bld)
    build_ctdb_events(bld)
    build_commands(bld)
    build_module(bld)
    build_tests(bld)
    build_doc(bld)


def sources(bld, pattern, excl=()):
    found = bld.path.ant_glob(pattern, excl=list(excl))
    return sorted(found, key=lambda node: node.abspath())


def program(bld, target, source, use, **more):
    bld.program(target=target, source=source, use=use, includes='.',
                **more)


def build_core(bld):
    bld.stlib(target='pingpong', includes='.', cflags=['-fPIC'],
              source=sources(bld, 'core/*/*.c',
                             ['core/member/worker_main.c']))
    # beside the command, which looks for it there before it is installed
    program(bld, 'cli/pingpong-worker', 'core/member/worker_main.c', CORE,
            install_path='${LIBEXECDIR}')


def build_commands(bld):
    without = [] if bld.env.WITH_CTDB else ['cli/cmd_apply.c']
    program(bld, 'cli/pingpong', sources(bld, 'cli/*.c', without),
            bld.env.EVENTS + CORE + ' POPT', install_path='${BINDIR}')

    # the other door of the same program
    bld(rule=link_beside, source='cli/pingpong', target='cli/ping_pong')
    bld.symlink_as('${LIBEXECDIR}/ping_pong',
                   os.path.relpath(bld.env.BINDIR + '/pingpong',
                                   bld.env.LIBEXECDIR))


def link_beside(task):
    path = task.outputs[0].abspath()
    if os.path.lexists(path):
        os.unlink(path)
    os.symlink(task.inputs[0].name, path)


def build_ctdb_events(bld):
    if bld.env.WITH_CTDB:
        # a library, so that unit tests can link it too
        bld.stlib(target='ctdb-events', includes='.',
                  source=sources(bld, 'ctdb-events/*.c',
                                 ['ctdb-events/smbconf_*.c']))
        bld.install_files(EVENTS_DIR, 'ctdb-events/00.pingpong.script',
                          chmod=Utils.O755)
        bld.install_files(OPTIONS_DIR, 'ctdb-events/00.pingpong.options')
    if bld.env.WITH_SMBCONF:
        program(bld, 'ctdb-events/pingpong-smbconf',
                sources(bld, 'ctdb-events/smbconf_*.c'),
                'ctdb-events SMBCONF TALLOC JANSSON',
                install_path='${LIBEXECDIR}')


def build_module(bld):
    """Linked with nothing of Samba's: check_module says why."""
    if not bld.env.WITH_VFS:
        return
    module = bld.shlib(
        features='samba_module', target='vfs_pingpong/pingpong',
        source=sources(bld, 'vfs_pingpong/*.c'), includes='.',
        use='pingpong JANSSON SAMBA',
        linkflags=['-Wl,--version-script='
                   + bld.path.find_node('buildtools/module.map').abspath()],
        install_path='${MODULESDIR}/vfs')
    module.env.cshlib_PATTERN = '%s.so'
    for source in sources(bld, 'tests/smbd/*.c'):
        other = bld.shlib(
            features='after_samba_module', target=target(source),
            source=[source, 'vfs_pingpong/gate.c'], includes='.',
            use='pingpong JANSSON SAMBA', install_path=None)
        other.env.cshlib_PATTERN = '%s.so'


class module_headers(Task.Task):
    """Samba's generated headers are there before the module is compiled."""
    color = 'BLUE'

    def keyword(self):
        return 'Generating headers for'

    def run(self):
        script = self.generator.bld.path.find_node(
            'buildtools/samba_headers.py')
        own = ['-I' + node.abspath()
               for node in self.generator.to_incnodes('.')]
        files = [node.abspath() for node in self.inputs
                 if node.name.endswith('.c')]
        ret = self.exec_command(
            [sys.executable, script.abspath(), self.env.SAMBA_SOURCE,
             self.env.HEADERS_DIR] + own + files,
            env=dict(os.environ, CC=' '.join(self.env.CC)))
        if ret == 0:
            self.outputs[0].write('')
        return ret


class module_check(Task.Task):
    """smbd has all that the module takes from it."""
    color = 'BLUE'

    def keyword(self):
        return 'Checking'

    def run(self):
        script = self.generator.bld.path.find_node(
            'buildtools/check_module')
        ret = self.exec_command(
            [script.abspath(), self.inputs[0].abspath()] + self.env.SMBD)
        if ret == 0:
            self.outputs[0].write('')
        return ret


@TaskGen.feature('samba_module')
@TaskGen.after_method('apply_link')
def surround_module(self):
    room = self.path.find_node('vfs_pingpong')
    stamps = room.get_bld()
    headers = self.create_task('module_headers', room.ant_glob('*.[ch]'),
                               stamps.make_node('headers.stamp'))
    for task in self.compiled_tasks:
        task.set_run_after(headers)
    self.create_task('module_check', self.link_task.outputs[0],
                     stamps.make_node('check.stamp'))


@TaskGen.feature('after_samba_module')
@TaskGen.after_method('apply_link')
def after_module(self):
    stamp = self.bld.bldnode.make_node('vfs_pingpong/headers.stamp')
    for task in self.compiled_tasks:
        task.dep_nodes.append(stamp)


def build_tests(bld):
    if bld.env.LIB_CMOCKA:
        for source in sources(bld, 'tests/unit/test_*.c'):
            of_ctdb = '#include "ctdb-events/' in source.read()
            if of_ctdb and not bld.env.WITH_CTDB:
                continue
            program(bld, target(source), with_gate(source),
                    bld.env.EVENTS + CORE + ' CMOCKA POPT', install_path=None)
    if bld.env.LIB_FUSE3:
        program(bld, 'tests/clusterfs/clusterfs',
                sources(bld, 'tests/clusterfs/*.c'), 'FUSE3',
                install_path=None)
    for source in sources(bld, 'tests/bench/*.c'):
        program(bld, target(source), with_gate(source), CORE,
                install_path=None)
    for source in sources(bld, 'tests/hostile/*.c'):
        program(bld, target(source), [source], '', install_path=None)


def with_gate(source):
    gate = '#include "vfs_pingpong/gate.h"' in source.read()
    return [source, 'vfs_pingpong/gate.c'] if gate else [source]


def target(source):
    return os.path.splitext(source.srcpath())[0]


def build_doc(bld):
    bld.install_files('${DOCDIR}', 'README.md doc/fit-for-ctdb.md '
                                 'doc/threat-model.md')
    bld.install_as('${PREFIX}/share/bash-completion/completions/pingpong',
                   'doc/pingpong.bash')
    if not bld.env.XSLTPROC:
        return
    for source in sources(bld, 'doc/*.xml'):
        page = target(source)
        section = page[-1]
        if page[-2] != '.' or not section.isdigit():
            bld.fatal('%s: name it PAGE.SECTION.xml' % source.srcpath())
        bld(rule='${XSLTPROC} ' + XSLT_OPTIONS + ' ${SRC}', source=source,
            target=page)
        installed = os.path.basename(page)
        if installed == 'ping_pong.1':
            # the package ctdb owns that one, as it does the command
            installed += 'pingpong'
        bld.install_as('${MANDIR}/man' + section + '/' + installed, page)


class TestContext(Build.BuildContext):
    '''builds, then runs every test (or, with --matrix, the table of faults)'''
    cmd = 'test'

    def execute(self):
        super().execute()
        command = ['tests/run', '--build', self.bldnode.abspath()]
        if self.options.matrix:
            command.append('--matrix')
        become(self, command)


class BenchContext(Build.BuildContext):
    '''builds, then measures'''
    cmd = 'bench'

    def execute(self):
        super().execute()
        become(self, ['tests/bench/run', '-b', self.bldnode.abspath()])


class FuzzContext(Build.BuildContext):
    '''builds, then runs each fuzz target a million times'''
    cmd = 'fuzz'

    def execute(self):
        super().execute()
        become(self, ['tests/fuzz/run', '--build', self.bldnode.abspath(),
                      '--runs', '1000000'])


def become(ctx, command):
    """The last thing that this run of waf does: what the command prints last,
    and its exit status, are those of the run."""
    os.chdir(ctx.path.abspath())
    os.execv(command[0], command)


def tracked(ctx):
    names = ctx.cmd_and_log(['git', 'ls-files'], quiet=Context.BOTH)
    return names.splitlines()


def dist(ctx):
    ctx.algo = 'tar.gz'
    ctx.files = [ctx.path.find_node(name) for name in tracked(ctx)]


def shellcheck(ctx):
    '''runs shellcheck on every script'''
    scripts = []
    for name in tracked(ctx):
        with open(name, 'rb') as file:
            head = file.read(200)
        line = head.split(b'\n')[0]
        if line.startswith(b'#!') and line.endswith(b'sh') \
                or b'# shellcheck shell=' in head:
            scripts.append(name)
    ret = ctx.exec_command(['shellcheck', '-x', '-P', 'SCRIPTDIR'] + scripts,
                           stdout=None, stderr=None)
    if ret:
        ctx.fatal('shellcheck: see above')
    Logs.info('%d scripts', len(scripts))
