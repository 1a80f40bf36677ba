/** What is said to git and ssh, and what their words mean. Pure. */
import type { SourceProblem } from '../ports.ts';

/** How git names the parts of a commit, separated by NUL. */
export const COMMIT_FORMAT = '%H%x00%ct%x00%an <%ae>%x00%s';

/** `user@host:path` is how people write addresses of SSH. */
export const schemeOf = (url: string): string => /^([a-z]+):\/\//.exec(url)?.[1] ?? 'ssh';

/** Git starts ssh by a shell. */
const quoted = (word: string): string => `'${word.replaceAll("'", String.raw`'\''`)}'`;

interface SshOptions {
  readonly keyFile: string | undefined;
  /** Undefined: the key of a server is stored in `learnedFile` when it is first seen, and a changed one is refused. */
  readonly knownHosts: string | undefined;
  readonly learnedFile: string;
}

/** No configuration, agent or key of the user takes part, and a dead connection ends within half a minute. */
export function sshCommand({ keyFile, knownHosts, learnedFile }: SshOptions): string {
  const options = [
    'BatchMode=yes',
    'ConnectTimeout=15',
    'ServerAliveInterval=10',
    'ServerAliveCountMax=3',
    'GlobalKnownHostsFile=/dev/null',
    `UserKnownHostsFile="${knownHosts ?? learnedFile}"`,
    `StrictHostKeyChecking=${knownHosts === undefined ? 'accept-new' : 'yes'}`,
    'IdentityAgent=none',
    ...(keyFile === undefined ? [] : ['IdentitiesOnly=yes', `IdentityFile="${keyFile}"`]),
  ];
  return ['ssh', '-F', '/dev/null', ...options.flatMap((option) => ['-o', quoted(option)])].join(' ');
}

/** The repository is only a copy: what is damaged is fetched again. */
export const isDamaged = (stderr: string): boolean =>
  /\.lock'?:|corrupt|bad object|not a git repository|loose object|object file .* is empty|unable to read tree|missing (?:blob|tree|commit)|shallow file has changed/i.test(
    stderr,
  );

const CASES: readonly (readonly [RegExp, string])[] = [
  [/No space left on device|Disk quota exceeded/i, 'the disk of the state directory is full: free disk space'],
  [/Host key verification failed/i, 'the key of its host is not the known one: check the host, and "SVC_GIT_KNOWN_HOSTS"'],
  [/UNPROTECTED PRIVATE KEY|bad permissions/i, 'others may read the file of the key: "chmod 600" it'],
  [/Load key|invalid format|error in libcrypto/i, '"SVC_GIT_KEY" is no private key that can be read without a passphrase: replace it'],
  [
    /Permission denied|Authentication failed|could not read Username|terminal prompts disabled|returned error: 40[13]/i,
    'it refuses the credential: check "SVC_GIT_KEY", and that the key may read the repository',
  ],
  [/Could not resolve host/i, 'its host name is not known: check "SVC_GIT_URL" and the network'],
  [/certificate/i, 'its certificate is not trusted: add the authority to those of the system'],
  [
    /does not appear to be a git repository|Repository not found|repository .* not found|returned error: 404|not exported/i,
    'there is no repository at this address, or the key may not read it: check "SVC_GIT_URL"',
  ],
  [/returned error: 30[1278]/i, 'it has moved: set "SVC_GIT_URL" to its new address'],
  [
    /Connection refused|Connection timed out|unable to connect|Failed to connect|Network is unreachable/i,
    'its server does not answer: check the network',
  ],
];

/** `timedOutMs`: git was ended after so long. */
export function explainFetch(
  stderr: string,
  { url, ref }: { readonly url: string; readonly ref: string },
  timedOutMs?: number,
): SourceProblem {
  const failed = (why: string): SourceProblem => ({ reason: 'FetchFailed', message: `"${url}" cannot be fetched: ${why}` });
  if (timedOutMs !== undefined) return failed(`its server took more than ${Math.round(timedOutMs / 1000)} s: check it and the network`);
  if (/couldn't find remote ref|Remote branch .* not found/i.test(stderr))
    return {
      reason: 'RefMissing',
      message: `"${url}" has no branch or tag "${ref}": create it again, or set "SVC_GIT_REF" to another one`,
    };
  const known = CASES.find(([pattern]) => pattern.test(stderr));
  return failed(known?.[1] ?? `git says "${lastLine(stderr)}"`);
}

export const lastLine = (text: string): string => (text.trim().split('\n').at(-1) ?? '').replaceAll(/[\p{Cc}"]/gu, ' ').slice(0, 300);
