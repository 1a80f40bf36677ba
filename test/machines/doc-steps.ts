/** The commands of the documentation, on a new machine: every block of shell commands with the mark `machine=NAME`, as it stands, in a terminal. */
import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { blocksIn } from '../support/doc-blocks.ts';
import { bootMachine, describeWithMachine, type Machine, type Ran } from '../support/require/require-machine.ts';
import { MAKE_IMAGE } from './chat-steps.ts';

const PAGES = ['docs/installing.md', 'docs/podman.md', 'docs/security.md', 'docs/upgrading.md'];
const BLOCKS = new Map(
  PAGES.flatMap((page) => blocksIn(page, readFileSync(page, 'utf8'))).flatMap(({ marks, commands }) =>
    marks.filter((mark) => mark.startsWith('machine=')).map((mark) => [mark.slice('machine='.length), commands] as const),
  ),
);
const PASSWORD = ' correct horse ';
const CREDENTIALS = `admin\n${PASSWORD}\n${PASSWORD}\n`;
const answersAt = (url: string): string =>
  `for i in $(seq 300); do curl --silent --fail --insecure ${url} >/dev/null && exit 0; sleep 0.1; done; exit 1`;
const SERVICE = 'http://127.0.0.1:8080/api/slots';
const CHAT = 'http://127.0.0.1:3001/cgi-bin/env';
const BEHIND_PROXY = `--user 'admin:${PASSWORD}' https://$(hostname).local/api/slots --resolve $(hostname).local:443:127.0.0.1`;

interface Step {
  readonly block: string;
  /** Runs before the block, for what the page takes as given. */
  readonly given?: string;
  /** What a person types. */
  readonly typed?: string;
  readonly user?: string;
  /** Fails unless the block did what the page says. */
  readonly then: string;
}

/** In an order in which each can be done. */
const STEPS: readonly Step[] = [
  { block: 'install', then: answersAt(SERVICE) },
  { block: 'token', user: 'svc', then: 'runuser -u svc -- svcctl token list | grep laptop' },
  { block: 'chat', then: `${answersAt(CHAT)}; podman ps | grep registry.example` },
  { block: 'auth', typed: CREDENTIALS, then: answersAt(BEHIND_PROXY) },
  { block: 'auth-off', then: `${answersAt(SERVICE)}; ! grep _URL= /etc/svc/api.env; test ! -e /etc/avahi/services/svc.service` },
  {
    block: 'rollback',
    given: `cp -a /opt/svc/0.2.0 /root/0.3.0; cd /root/0.3.0; sed -i 's/"version": "[^"]*"/"version": "0.3.0"/' package.json
      find . -type f ! -name SHA256SUMS -printf '%P\\n' | sort | xargs -d '\\n' sha256sum >SHA256SUMS; bash installer/install.sh`,
    then: answersAt(SERVICE),
  },
  { block: 'uninstall', then: 'test ! -e /opt/svc; test -e /etc/svc/slots; test -d /var/lib/svc' },
  { block: 'purge', then: 'test ! -e /etc/svc; test ! -e /var/lib/svc; ! getent passwd svc' },
  { block: 'package', then: answersAt(SERVICE) },
  {
    block: 'package-extras',
    given: `podman tag localhost/stand-in-chat:v1 $(sed -n 's/^DEFAULT_CHAT_IMAGE=//p' /opt/svc/current/installer/lib/chat.sh)`,
    typed: CREDENTIALS,
    then: answersAt(BEHIND_PROXY),
  },
];

export function describeDocuments(suite: 'bookworm' | 'trixie'): void {
  describeWithMachine(`The documented commands on Debian "${suite}"`, () => {
    let machine: Machine;

    beforeAll(async () => {
      machine = await bootMachine(suite);
      await machine.copy(process.env['SVC_TEST_RELEASE'] ?? '', '/root/dist');
      // Nothing can be downloaded here, so podman has the images before.
      await machine.shell(`apt-get update -qq && apt-get install -y -qq --no-install-recommends podman netavark >/dev/null 2>&1
        ${MAKE_IMAGE}
        podman tag localhost/stand-in-chat:v1 registry.example/webui:v1 ghcr.io/open-webui/open-webui:v0.11.3`);
    }, 600_000);
    afterAll(async () => await machine.down(), 120_000);

    async function type(commands: string, { typed = '', user = 'root' }: Pick<Step, 'typed' | 'user'>): Promise<Ran> {
      await machine.run(['bash', '-c', 'cat >/tmp/block; chmod 644 /tmp/block'], commands);
      const session = `cd /root; exec runuser -u ${user} -- bash -euo pipefail /tmp/block`;
      return await machine.run(['script', '--quiet', '--return', '--command', `bash -c '${session}'`, '/dev/null'], typed);
    }

    test('a block with a mistake fails', async () => {
      for (const commands of ['sudo bash dist/instal.sh', 'sudo bash dist/install.sh --auth=basik', 'false | cat\ntrue'])
        expect(await type(commands, {})).not.toMatchObject({ code: 0 });
    }, 60_000);

    test('every marked block has a step', () => {
      expect(STEPS.map(({ block }) => block).toSorted()).toEqual([...BLOCKS.keys()].toSorted());
    });

    test.each(STEPS)(
      '$block',
      async ({ block, given, then, ...typing }) => {
        if (given !== undefined) await machine.shell(given);
        const { code, output } = await type(BLOCKS.get(block) ?? '', typing);
        expect([code, code === 0 ? '' : output]).toEqual([0, '']);
        await machine.shell(then);
      },
      600_000,
    );
  });
}
