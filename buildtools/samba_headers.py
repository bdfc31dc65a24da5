#!/usr/bin/python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Makes the generated headers that given Samba modules need, and no others.

usage: samba_headers.py SOURCE HEADERS [-IDIR...] FILE.c...

SOURCE is a Samba source tree, unpacked and configured. The compiler (CC) is
asked which headers the files miss; SOURCE's own generators make those, under
HEADERS, where they lie as they would in Samba's bin/default. What a new header
includes may be missing too, so the question is asked until nothing is missing.
That takes seconds, where "waf build" in SOURCE takes minutes. -I names where
the files' own headers are.
"""

import glob
import os
import re
import subprocess
import sys
import tempfile

DEFINES = ['_SAMBA_BUILD_=4', 'HAVE_CONFIG_H=1', '__STDC_WANT_LIB_EXT1__=1']

DIRS = ['source3', 'source3/include', 'source3/lib', 'lib/replace', 'lib',
        'source4', 'source4/include', 'include', 'librpc', '']

IDL_DIRS = ['librpc', 'source3/librpc', 'source4/librpc']


def include_dirs(source, headers):
    """Where a file of Samba finds its headers, in Samba's own order."""
    dirs = [os.path.join(source, 'bin/default/include')]
    for name in DIRS:
        dirs += [os.path.normpath(os.path.join(headers, name)),
                 os.path.normpath(os.path.join(source, name))]
    return dirs


class Generators:
    """Runs SOURCE's generators; what they write lands in a scratch directory,
    from where only the header that was asked for is taken over."""

    def __init__(self, source, headers):
        self.source = source
        self.headers = headers
        self.rules = [
            (r'gen_ndr/(\w+)\.h$', self.idl),
            (r'(ntstatus_gen|werror_gen|hresult)\.h$', self.error_table),
            (r'param_(proto)\.h$', self.parameters),
            (r'param_(functions)\.h$', self.parameters),
            (r'param_(local)\.h$', self.parameters),
            (r'param_(global)\.h$', self.parameters),
        ]

    def make(self, header):
        for pattern, rule in self.rules:
            match = re.search(pattern, header)
            if match is None:
                continue
            with tempfile.TemporaryDirectory() as scratch:
                made, directory = rule(match.group(1), scratch)
                self.take(made, directory, scratch)
            return
        sys.exit('samba_headers: no generator is known for ' + header)

    def take(self, made, directory, scratch):
        with open(made, encoding='utf-8') as file:
            content = file.read()
        # pidl's headers include each other by the path they were written to
        content = content.replace(scratch + '/', '')
        # two builds may fill HEADERS at once: each header appears whole
        directory = os.path.join(self.headers, directory)
        os.makedirs(directory, exist_ok=True)
        with tempfile.NamedTemporaryFile('w', encoding='utf-8',
                                         dir=directory, delete=False) as file:
            file.write(content)
        os.chmod(file.name, 0o644)
        os.replace(file.name,
                   os.path.join(directory, os.path.basename(made)))

    def run(self, *command):
        subprocess.run(command, cwd=self.source, check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)

    def idl(self, name, scratch):
        base = re.sub(r'^ndr_', '', name)
        option = '--header'
        if base != name:
            option = '--ndr-parser'
        for suffix, flavour in (('_c', '--client'),
                                ('_scompat', '--server-compat')):
            if base.endswith(suffix):
                base = base[:-len(suffix)]
                option = flavour
        for directory in IDL_DIRS:
            idl = '%s/idl/%s.idl' % (directory, base)
            if not os.path.exists(os.path.join(self.source, idl)):
                continue
            output = '%s/%s/gen_ndr' % (scratch, directory)
            os.makedirs(output)
            self.run('perl', 'pidl/pidl', '--quiet', '--includedir=librpc/idl',
                     '--outputdir', output, '--header', option, '--', idl)
            return '%s/%s.h' % (output, name), directory + '/gen_ndr'
        sys.exit('samba_headers: no IDL file for %s.h' % name)

    def error_table(self, name, scratch):
        kind = name.replace('_gen', '')
        script = 'source4/scripting/bin/gen_%s.py' % kind
        with open(os.path.join(self.source, script)) as file:
            wanted = re.search(r'len\(sys\.argv\) == (\d+)', file.read())
        header = '%s/%s.h' % (scratch, name)
        # source files for C, Python ...: how many depends on the version
        others = ['%s/%d' % (scratch, n)
                  for n in range(int(wanted.group(1)) - 3)]
        self.run(sys.executable, script,
                 'libcli/util/%s_err_table.txt' % kind, header, *others)
        return header, 'libcli/util'

    def parameters(self, kind, scratch):
        mode, directory, more = {
            'proto': ('S3PROTO', 'source3/param', []),
            'functions': ('LIBPROTO', 'lib/param', []),
            'local': ('PARAMDEFS', 'lib/param', ['--scope=LOCAL']),
            'global': ('PARAMDEFS', 'lib/param', ['--scope=GLOBAL']),
        }[kind]
        header = '%s/param_%s.h' % (scratch, kind)
        self.run(sys.executable, 'script/generate_param.py',
                 '--file', self.parameter_list(scratch),
                 '--output', header, '--mode=' + mode, *more)
        return header, directory

    def parameter_list(self, scratch):
        """All parameters of smb.conf in one XML file. Path entities stand in
        the text only, which no header needs: any value declares them."""
        text = ''
        for name in sorted(glob.glob(os.path.join(
                self.source, 'docs-xml/smbdotconf/*/*.xml')),
                key=os.path.basename):
            with open(name, encoding='utf-8') as file:
                text += file.read()
        entities = sorted(set(re.findall(r'&(pathconfig\.[\w.]+);', text)))
        path = scratch + '/parameters.all.xml'
        with open(path, 'w', encoding='utf-8') as file:
            file.write('<!DOCTYPE section [\n')
            for entity in entities:
                file.write("<!ENTITY %s ''>\n" % entity)
            file.write(']>\n<section>\n%s</section>\n' % text)
        return path


def missing(source, headers, files):
    command = os.environ.get('CC', 'gcc').split() + ['-M', '-MG']
    command += ['-D' + define for define in DEFINES]
    command += ['-I' + path for path in include_dirs(source, headers)]
    rules = subprocess.run(command + files, check=True, text=True,
                           stdout=subprocess.PIPE).stdout
    return sorted(set(name for name in rules.replace('\\\n', ' ').split()
                      if name.endswith('.h') and not os.path.exists(name)))


def generate(source, headers, files):
    generators = Generators(source, headers)
    made = set()
    while True:
        names = missing(source, headers, files)
        if not names:
            return
        for name in names:
            if name in made:
                sys.exit('samba_headers: %s was made, but is not found'
                         % name)
            generators.make(name)
            made.add(name)


if __name__ == '__main__':
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    try:
        generate(os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2]),
                 sys.argv[3:])
    except subprocess.CalledProcessError as error:
        sys.stderr.buffer.write(error.stderr or b'')
        sys.exit('samba_headers: failed: ' + ' '.join(error.cmd))
