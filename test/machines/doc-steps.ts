/**
 * A stranger's hour with the documentation alone: every block of shell commands with the mark `machine=NAME`, as it
 * stands, in a terminal, from the installation to the last file that is removed. `move.test.ts` has the other machine.
 */
import { readFileSync } from 'node:fs';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { DEMO_SENTENCES, demoModelPath } from '../../toolboxes/demo/demo-models.ts';
import { blocksIn } from '../support/doc-blocks.ts';
import { APT_LISTS, copyModels, type Machine, type Ran } from '../support/require/require-machine.ts';
import { MAKE_IMAGE } from './chat-steps.ts';
import { LITTLE_ROOM } from './host-steps.ts';
import { AS_SVC, MAKE_ENGINE_IMAGE, USE_CPU } from './podman-steps.ts';

const PAGES = ['installing', 'first-model', 'podman', 'security', 'upgrading', 'backup'].map((page) => `docs/${page}.md`);
export const BLOCKS: ReadonlyMap<string, string> = new Map(
  PAGES.flatMap((page) => blocksIn(page, readFileSync(page, 'utf8'))).flatMap(({ marks, commands }) =>
    marks.filter((mark) => mark.startsWith('machine=')).map((mark) => [mark.slice('machine='.length), commands] as const),
  ),
);
/** Blocks of `move.test.ts`. */
export const MOVE = { from: 'move-from', to: 'move-to' } as const;
const PASSWORD = ' correct horse ';
const CREDENTIALS = `admin\n${PASSWORD}\n${PASSWORD}\n`;
const answersAt = (url: string): string =>
  `for i in $(seq 600); do curl --silent --fail --insecure ${url} >/dev/null && exit 0; sleep 0.1; done; exit 1`;
const SERVICE = 'http://127.0.0.1:8080/api/slots';
const CHAT = 'http://127.0.0.1:3001/cgi-bin/env';
const BEHIND_PROXY = `--user 'admin:${PASSWORD}' https://$(hostname).local/api/slots --resolve $(hostname).local:443:127.0.0.1`;
const runs = (version: string): string =>
  `(${answersAt(SERVICE)}); curl --silent http://127.0.0.1:8080/api/status | grep '"version":"${version}"'`;
const OWN_MODEL_ANSWERS = `(${answersAt(SERVICE)}); svcctl wait slot/primary --timeout 5m; curl --silent http://127.0.0.1:8080/v1/chat/completions \
  -H 'content-type: application/json' -d '{"messages":[{"role":"user","content":"Hello"}],"max_tokens":40,"temperature":0}' |
  grep '${DEMO_SENTENCES['demo-owl'].slice(0, 12)}'`;

/** Puts the archive of a newer release into "dist". */
const NEWER_RELEASE = String.raw`
  archive=$(cd dist; ls *.tar.gz | sed s/0.2.0/0.3.0/) release=$(basename $archive .tar.gz)
  cp -a /opt/svc/0.2.0 $release; (cd $release; sed -i 's/"version": "[^"]*"/"version": "0.3.0"/' package.json
  find . -type f ! -name SHA256SUMS -printf '%P\n' | sort | xargs -d '\n' sha256sum >SHA256SUMS)
  rm dist/*.tar.gz dist/*.tar.gz.sha256; tar --create --use-compress-program 'gzip -1' --file dist/$archive $release; rm -r $release`;

interface Step {
  readonly block: string;
  readonly what: string;
  /** Runs before the block, for what the page takes as given. */
  readonly given?: string;
  /** What a person types. */
  readonly typed?: string;
  readonly user?: string;
  /** What the block prints. */
  readonly says?: RegExp;
  /** The block fails, because there is little room on the disk. */
  readonly onFullDisk?: true;
  /** Fails unless the block did what the page says. */
  readonly then: string;
  /** Debian 12 has podman 4.3, with which its slots are not tested. */
  readonly only?: 'trixie';
}

const HOUR: readonly Step[] = [
  { block: 'install', what: 'the installation', then: answersAt(SERVICE) },
  {
    block: 'first-answer',
    what: 'the first answer',
    given: 'cp -r models/. /var/lib/svc/models; svcctl slot load primary --model demo-fox --wait --timeout 5m',
    says: new RegExp(DEMO_SENTENCES['demo-fox'].slice(0, 12)),
    then: 'true',
  },
  { block: 'own-model', what: 'a model file', given: `cp models/${demoModelPath('demo-owl')} my-model.gguf`, then: OWN_MODEL_ANSWERS },
  {
    block: 'podman',
    what: 'slots in containers',
    // The first attempt sets up the podman that gets the image.
    given: `${USE_CPU}; bash dist/install.sh --runtime=podman >/dev/null 2>&1 || true; ${MAKE_ENGINE_IMAGE}`,
    then: `${OWN_MODEL_ANSWERS}; (${AS_SVC} podman ps) | grep svc-slot-primary`,
    only: 'trixie',
  },
  {
    block: 'podman-look',
    what: 'containers and images',
    says: /svc-slot-primary[^]*gguf +cpu/,
    then: 'true',
    only: 'trixie',
  },
  {
    block: 'podman-return',
    what: 'slots as processes again',
    then: `${OWN_MODEL_ANSWERS}; grep '"runtime": "process"' /var/lib/svc/runtime.json`,
    only: 'trixie',
  },
  { block: 'chat', what: 'another chat page', then: `(${answersAt(CHAT)}); podman ps | grep registry.example` },
  { block: 'auth', what: 'HTTPS', typed: CREDENTIALS, then: answersAt(BEHIND_PROXY) },
  { block: 'token', what: 'a token', user: 'svc', says: /svc_[0-9a-f]{8}\./, then: 'runuser -u svc -- svcctl token list | grep laptop' },
  {
    block: 'auth-off',
    what: 'no authentication',
    then: `(${answersAt(SERVICE)}); ! grep _URL= /etc/svc/api.env; test ! -e /etc/avahi/services/svc.service`,
  },
  {
    block: 'upgrade',
    what: 'a full disk',
    given: NEWER_RELEASE,
    onFullDisk: true,
    says: /Free 800 MiB of disk space/,
    then: runs('0.2.0'),
  },
  { block: 'upgrade', what: 'an upgrade', then: runs('0.3.0') },
  { block: 'rollback', what: 'the way back', then: runs('0.2.0') },
  { block: 'backup', what: 'a backup', says: /Saved \d+ files[^]*Restored \d+ files/, then: OWN_MODEL_ANSWERS },
  { block: 'uninstall', what: 'the end', then: 'test ! -e /opt/svc; test -e /etc/svc/slots; test -d /var/lib/svc' },
  { block: 'purge', what: 'the end of all files', then: 'test ! -e /etc/svc; test ! -e /var/lib/svc; ! getent passwd svc' },
  { block: 'package', what: 'the package', then: answersAt(SERVICE) },
  {
    block: 'package-extras',
    what: 'the package with everything',
    given: `podman tag localhost/stand-in-chat:v1 $(sed -n 's/^DEFAULT_CHAT_IMAGE=//p' /opt/svc/current/installer/lib/chat.sh)`,
    typed: CREDENTIALS,
    then: answersAt(BEHIND_PROXY),
  },
];

/** Nothing can be downloaded here, so podman has the images before. */
const PREPARE_CHAT_IMAGES = `${APT_LISTS}; apt-get install -y -qq --no-install-recommends podman netavark >/dev/null 2>&1
  ${MAKE_IMAGE}
  podman tag localhost/stand-in-chat:v1 registry.example/webui:v1 ghcr.io/open-webui/open-webui:v0.11.3`;

/** Runs a block in a terminal, in the home of root. */
export async function type(
  machine: Machine,
  commands: string,
  { typed = '', user = 'root', onFullDisk }: Pick<Step, 'typed' | 'user' | 'onFullDisk'> = {},
): Promise<Ran> {
  await machine.run(['bash', '-c', 'cat >/tmp/block; chmod 644 /tmp/block'], commands);
  const session = `cd /root; exec runuser -u ${user} -- bash -euo pipefail /tmp/block`;
  const command = onFullDisk === true ? LITTLE_ROOM.replace('COMMAND', session) : session;
  return await machine.run(['script', '--quiet', '--return', '--command', command, '/dev/null'], typed);
}

export function describeDocuments(suite: 'bookworm' | 'trixie', clean: () => Promise<Machine>): void {
  describe(`The documented commands on Debian "${suite}"`, () => {
    let machine: Machine;

    beforeAll(async () => {
      machine = await clean();
      await machine.shell(PREPARE_CHAT_IMAGES);
      await copyModels(machine, '/root/models');
    }, 600_000);

    test('a block with a mistake fails', async () => {
      for (const commands of ['sudo bash dist/instal.sh', 'sudo bash dist/install.sh --auth=basik', 'false | cat\ntrue'])
        expect(await type(machine, commands)).not.toMatchObject({ code: 0 });
    }, 60_000);

    test('every marked block has a step', () => {
      expect([...new Set([...HOUR.map(({ block }) => block), ...Object.values(MOVE)])].toSorted()).toEqual([...BLOCKS.keys()].toSorted());
    });

    test.each(HOUR.filter(({ only = suite }) => only === suite))(
      '$block: $what',
      async ({ block, given, then, says = /^/, ...typing }) => {
        if (given !== undefined) await machine.shell(given);
        const { code, output } = await type(machine, BLOCKS.get(block) ?? '', typing);
        expect({ output, code }).toEqual({ output: expect.stringMatching(says), code: typing.onFullDisk === true ? 1 : 0 });
        await machine.shell(then);
      },
      600_000,
    );
  });
}
