/** Settings of the repository that declares the configuration of a host (`docs/gitops.md`), and their rules. Pure. */
import { z } from 'zod';
import { WARM_TIME } from '../words/quantities.ts';
import { AbsolutePath, DurationMs, OffOn } from './setting-values.ts';

const URL_RULE =
  'Use a URL such as "ssh://git@git.example.com/team/gpu-box.git", "git@git.example.com:team/gpu-box.git" or "https://git.example.com/team/gpu-box.git", without a password';
const HOST = String.raw`(?:[A-Za-z0-9][A-Za-z0-9.-]*|\[[0-9a-fA-F:]+\])`;
const USER = '(?:[A-Za-z0-9_][A-Za-z0-9._-]*@)?';
const PATH = String.raw`[A-Za-z0-9_.~+/%-]+`;
/** No pattern for zod, because its message would repeat the URL. No word can begin with "-", and no helper be named. */
const GIT_URL = new RegExp(
  `^(?:(?:https?|git)://${HOST}(?::[0-9]+)?/${PATH}|ssh://${USER}${HOST}(?::[0-9]+)?/${PATH}|${USER}${HOST}:(?!/)[A-Za-z0-9_~]${PATH}|file:///${PATH})$`,
);
const GIT_REF = /^(?:[A-Za-z0-9_][A-Za-z0-9_.+-]*)(?:\/[A-Za-z0-9_][A-Za-z0-9_.+-]*)*$/;
const TREE_PATH = /^(?:\.|[A-Za-z0-9_-][A-Za-z0-9_.-]*(?:\/[A-Za-z0-9_-][A-Za-z0-9_.-]*)*)$/;
const WINDOW_RULE = 'Write times in which changes are permitted, separated by ";", such as "Mon-Fri 09:00-16:00; Sat 10:00-12:00"';

export const GIT_SETTINGS = {
  SVC_GIT_URL: z
    .string()
    .refine((url) => GIT_URL.test(url), URL_RULE)
    .optional()
    .describe('Host only: repository that declares slots, engines and profiles (`docs/gitops.md`). Default: none'),
  SVC_GIT_REF: z
    .string()
    .refine((ref) => GIT_REF.test(ref) && !ref.includes('..') && !ref.endsWith('.lock'), 'Use the name of a branch or tag, such as "main"')
    .default('HEAD')
    .describe('Branch or tag of the repository. `HEAD`: its default branch'),
  SVC_GIT_PATH: z
    .string()
    .refine((path) => TREE_PATH.test(path), 'Use a directory in the repository, such as "hosts/gpu-box", without "..", or "."')
    .default('.')
    .describe('Directory in the repository with `slots`, `engines` and `profiles`, as in the configuration directory'),
  SVC_GIT_INTERVAL: DurationMs.refine((ms) => ms >= 1000, 'Use at least "1s"')
    .prefault('1m')
    .describe('How often the repository is fetched'),
  SVC_GIT_KEY: AbsolutePath.optional().describe(
    'File with the private key that may read the repository over SSH; for HTTPS, a file with `USER:TOKEN`',
  ),
  SVC_GIT_KNOWN_HOSTS: AbsolutePath.optional().describe(
    'File of `known_hosts` with the key of the SSH server. Default: the key is stored when it is first seen, and a changed one is refused',
  ),
  SVC_GIT_ALLOWED_SIGNERS: AbsolutePath.optional().describe(
    'File with those who may sign commits: lines of SSH’s `allowed_signers`, or armoured public keys of OpenPGP. Default: commits need no signature',
  ),
  SVC_GIT_DECRYPT: z
    .string()
    .transform((text) => text.trim().split(/\s+/))
    .refine(([program = '']) => /^[^-]/.test(program), 'Use a command, such as "age --decrypt --identity /etc/svc/age.key"')
    .optional()
    .describe(
      'Command that decrypts files of `secrets` in the repository, from its standard input to its output, such as `age --decrypt --identity /etc/svc/age.key`; words are separated by spaces',
    ),
  SVC_GIT_SELF_HEAL: OffOn.default('off').describe(
    '`on`: local edits of what the repository declares are put back, and refused by the API. `off`: they stay until a commit or `svcctl source sync` replaces them',
  ),
  SVC_GIT_WEBHOOK_SECRET_FILE: AbsolutePath.optional().describe(
    'File with the secret of webhooks, at least 16 characters: `POST /api/source/sync` with a valid `X-Hub-Signature-256` fetches at once',
  ),
  SVC_CHANGE_WINDOWS: z
    .string()
    .transform((text) => text.split(';').map((entry) => entry.trim()))
    .refine((entries) => entries.length <= 20 && entries.every((entry) => WARM_TIME.test(entry)), WINDOW_RULE)
    .optional()
    .describe(
      'Times in which commits of the repository are applied, separated by `;`, such as `Mon-Fri 09:00-16:00`, in `SVC_TIME_ZONE`. At other times they wait; repairs do not. Default: always',
    ),
};

interface CheckedGit {
  readonly SVC_GIT_URL?: string | undefined;
  readonly SVC_GIT_KEY?: string | undefined;
  readonly SVC_GIT_KNOWN_HOSTS?: string | undefined;
  readonly SVC_GIT_ALLOWED_SIGNERS?: string | undefined;
  readonly SVC_GIT_WEBHOOK_SECRET_FILE?: string | undefined;
  readonly SVC_GIT_DECRYPT?: unknown;
  readonly SVC_CHANGE_WINDOWS?: unknown;
}

const NEED_URL = [
  'SVC_GIT_KEY',
  'SVC_GIT_KNOWN_HOSTS',
  'SVC_GIT_ALLOWED_SIGNERS',
  'SVC_GIT_WEBHOOK_SECRET_FILE',
  'SVC_GIT_DECRYPT',
  'SVC_CHANGE_WINDOWS',
] as const;

/** Over `http:` and `git:`, anyone on the way can replace a commit, which decides what runs here. */
export function findGitConflicts(settings: CheckedGit): readonly string[] {
  const { SVC_GIT_URL: url, SVC_GIT_KEY: key, SVC_GIT_ALLOWED_SIGNERS: signers } = settings;
  const alone = NEED_URL.filter((name) => url === undefined && settings[name] !== undefined);
  if (alone.length > 0) return alone.map((name) => `"${name}" has no effect without "SVC_GIT_URL": set both, or leave it out`);
  if (url === undefined || !/^(?:http|git):/.test(url) || /^[a-z]+:\/\/(?:localhost|127\.[0-9.]+|\[::1\])[:/]/.test(url)) return [];
  if (key !== undefined) return ['"SVC_GIT_KEY" would be sent unencrypted: use "https:" or "ssh:" in "SVC_GIT_URL"'];
  if (signers !== undefined) return [];
  return [
    '"SVC_GIT_URL" is not encrypted, so anyone on the way could replace commits: use "https:" or "ssh:", or set "SVC_GIT_ALLOWED_SIGNERS"',
  ];
}
