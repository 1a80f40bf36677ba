/** What can prevent an installation: each stops it with one line that says what to do, and leaves the machine as it was. */
import { expect, test } from '@jest/globals';
import type { Machine } from '../support/require/require-machine.ts';

interface Prerequisite {
  readonly what: string;
  /** Of a shell script that breaks the prerequisite and runs the installer, `$installer`. */
  readonly script: string;
  readonly line: RegExp;
}

const FAILING: readonly Prerequisite[] = [
  {
    what: 'somebody other than root',
    script: 'cp $installer /tmp/i.sh; runuser -u nobody -- bash /tmp/i.sh',
    line: /^install\.sh: Run it as root/,
  },
  {
    what: 'an option that does not exist',
    script: 'bash $installer --authh',
    line: /^install\.sh: Remove "--authh": there is no such option\nRun it with --help/,
  },
  {
    what: 'another processor',
    script:
      'mkdir -p /tmp/bin; printf "#!/bin/sh\\n[ \\$1 = -m ] && echo riscv64 || echo Linux\\n" >/tmp/bin/uname; chmod 755 /tmp/bin/uname; PATH=/tmp/bin:$PATH bash $installer',
    line: /^install\.sh: Use a machine with an x86-64 or ARM64 processor: there is no release for "riscv64"/,
  },
  {
    what: 'a machine without systemd',
    script: 'unshare --mount bash -c "mount -t tmpfs none /run/systemd && bash $installer"',
    line: /^install\.sh: Boot this machine with systemd/,
  },
  {
    what: 'a disk that is full',
    script: 'mkdir -p /tmp/full; unshare --mount bash -c "mount -t tmpfs -o size=10m none /opt && bash $installer"',
    line: /^install\.sh: Free 800 MiB of disk space for "\/opt\/svc": it has \d+ MiB/,
  },
  {
    what: 'a disk that is read-only',
    script: 'unshare --mount bash -c "mount --bind /opt /opt && mount -o remount,bind,ro /opt && bash $installer"',
    line: /^install\.sh: Make "\/opt\/svc" writable/,
  },
  {
    what: 'an archive that is missing',
    script: 'mkdir -p /tmp/alone; cp $installer /tmp/alone; bash /tmp/alone/install.sh',
    line: /^install\.sh: Put the release archive "svc-VERSION-linux-(x64|arm64)\.tar\.gz" beside this script/,
  },
  {
    what: 'an archive that is damaged',
    script:
      'mkdir -p /tmp/bad; cp $installer $folder/*.sha256 /tmp/bad; head -c 1000000 $folder/*.tar.gz >/tmp/bad/$(basename $folder/*.tar.gz); bash /tmp/bad/install.sh',
    line: /^install\.sh: Get the archive again: the checksum of ".*" is wrong/,
  },
  {
    what: 'an archive that somebody has changed',
    script:
      'root=/tmp/pack/svc-9.9.9-linux-$(uname -m | sed "s/x86_64/x64/; s/aarch64/arm64/"); mkdir -p $root/src; echo x >$root/src/main.ts; echo "00  src/main.ts" >$root/SHA256SUMS; tar --directory /tmp/pack --create --gzip --file /tmp/pack.tar.gz $(basename $root); bash $installer --archive /tmp/pack.tar.gz',
    line: /^install\.sh: Get the archive again: files of the release in ".*" are missing or differ from its list/,
  },
  {
    what: 'an address that is not encrypted',
    script: 'bash $installer --url http://127.0.0.1:9/svc.tar.gz',
    line: /^install\.sh: Use an https address, or give the hash of the archive with --sha256/,
  },
  {
    what: 'an address that does not answer',
    script: 'bash $installer --url https://127.0.0.1:9/svc.tar.gz 2>&1 | grep -v ^curl; exit ${PIPESTATUS[0]}',
    line: /^install\.sh: Check the address and the network: "https:\/\/127\.0\.0\.1:9\/svc\.tar\.gz" could not be downloaded/,
  },
  {
    what: 'a person called svc',
    script:
      'unshare --mount bash -c "cp /etc/passwd /tmp/passwd; echo svc:x:1000:1000::/home/svc:/bin/sh >>/tmp/passwd; mount --bind /tmp/passwd /etc/passwd; bash $installer"',
    line: /^install\.sh: Rename the user "svc"/,
  },
  {
    what: 'a svcctl of somebody else',
    script: 'touch /usr/local/bin/svcctl; bash $installer; code=$?; rm /usr/local/bin/svcctl; exit $code',
    line: /^install\.sh: Move "\/usr\/local\/bin\/svcctl" away/,
  },
  {
    what: 'a port that is in use',
    script:
      'systemd-run --quiet --unit taken --service-type=notify --socket-property=ListenStream=8080 true 2>/dev/null; systemctl start taken.socket; bash $installer; code=$?; systemctl stop taken.socket; exit $code',
    line: /^install\.sh: Stop the program that uses port 8080, or set SVC_LISTEN/,
  },
];

export function failingPrerequisites(machine: () => Machine, snapshot: () => Promise<string>): void {
  let before: string | undefined;
  test.each(FAILING)(
    '$what: stops with a line that says what to do, and changes nothing',
    async ({ script, line }) => {
      before ??= await snapshot();
      const setUp = 'installer=/root/first/install.sh folder=/root/first; export installer folder\n';
      const { code, output } = await machine().run(['bash', '-c', `${setUp}${script}`]);
      expect({ code, output }).toMatchObject({ output: expect.stringMatching(line) });
      expect(code).toBeGreaterThan(0);
      expect(output.trim().split('\n').length).toBeLessThanOrEqual(2);
      expect(await snapshot()).toBe(before);
    },
    120_000,
  );
}
