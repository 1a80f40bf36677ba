/** The kinds of values that settings have, as texts of the environment are parsed to them. */
import { z } from 'zod';
import { PUBLIC_KEY } from '../words/name-rules.ts';
import { isScope, SCOPES, type Scope } from '../words/access.ts';
import { parseDurationMs, parseSizeBytes } from '../words/quantities.ts';
import { durationWithin, sizeWithin } from '../words/quantity-schemas.ts';
import type { SpecProblem } from '../slot/spec-problem.ts';

export const ListenAddress = z
  .string()
  .regex(/^(\[[0-9a-fA-F:]+\]|[A-Za-z0-9.-]+):([0-9]{1,5})$/, 'Use an address and a port, such as "0.0.0.0:8080" or "[::1]:8080"')
  .transform((text) => {
    const colon = text.lastIndexOf(':');
    return { host: text.slice(0, colon).replace(/^\[|\]$/g, ''), port: Number(text.slice(colon + 1)) };
  })
  .refine((address) => address.port <= 65_535, 'Use a port up to 65535');

/** Names of the IANA database, such as `Europe/Berlin`. */
export const TimeZone = z.string().refine(isTimeZone, 'Use the name of a time zone, such as "Europe/Berlin" or "UTC"');

function isTimeZone(name: string): boolean {
  try {
    return new Intl.DateTimeFormat('en', { timeZone: name }).format(0) !== '';
  } catch {
    return false;
  }
}

/** Just a port stands for the loopback. */
export const LocalListenAddress = z
  .string()
  .transform((text) => (/^[0-9]{1,5}$/.test(text) ? `127.0.0.1:${text}` : text))
  .pipe(ListenAddress);

export const OffOn = z.enum(['off', 'on']);
export const Flag = z.enum(['0', '1', 'false', 'true']).transform((text) => text === '1' || text === 'true');
export const Count = (min: number, max: number) =>
  z
    .string()
    .regex(/^[0-9]+$/, 'Use a whole number')
    .transform(Number)
    .pipe(z.int().min(min).max(max));
/** A number of processes, or `auto`. More than there are cores cost memory and gain nothing. */
export const WorkerCount = z
  .string()
  .regex(/^(?:auto|[1-9][0-9]?)$/, 'Use a number of processes from 1 to 64, or "auto" for as many as there are cores')
  .transform((text): number | 'auto' => (text === 'auto' ? text : Number(text)))
  .refine((count) => count === 'auto' || count <= 64, 'Use at most 64 processes, or "auto" for as many as there are cores');
const WAIT_RULE = 'Use "off", or a duration from "100ms" to "1h" such as "5s"';
/** More often would be load without news. */
export const ProgressInterval = z
  .string()
  .regex(/^(?:off|[0-9]{1,7}(?:\.[0-9]{1,3})?(?:ms|[smh]))$/, WAIT_RULE)
  .transform((text): number | 'off' => (text === 'off' ? text : parseDurationMs(text)))
  .refine((ms) => ms === 'off' || (ms >= 100 && ms <= 3_600_000), WAIT_RULE);
/** Longer and larger ones are mistakes in the unit. */
export const DurationMs = durationWithin('0s', '365d').transform(parseDurationMs);
export const SizeBytes = sizeWithin('0', '1024Ti').transform(parseSizeBytes);
const COUNT_SERVER =
  /^(?:redis|valkey)s?:\/\/(?:(?:[^/?#@%]|%[0-9a-fA-F]{2})*@)?(?:[A-Za-z0-9._-]+|\[[0-9a-fA-F:.]+\])(?::[0-9]+)?(?:\/[0-9]{0,3})?$/;
/** No pattern, because its message would repeat the URL, which may contain a password. */
export const CountServerUrl = z
  .string()
  .refine(
    (text) => COUNT_SERVER.test(text) && URL.canParse(text),
    'Use a URL such as "redis://valkey.example.com:6379", with "rediss:" for TLS, and nothing after the number of the database',
  );
export const PublicKey = z.string().regex(PUBLIC_KEY, 'Use the line between BEGIN and END of a PEM file with an ed25519 public key');
const USER = /^[^/]*\/\/[^/?#]*@/;
/** Without a password, since answers and messages have it. */
export const HttpUrl = z
  .url({ protocol: /^https?$/, error: 'Use a URL that begins with "http://" or "https://"' })
  .refine((url) => !USER.test(url), 'Use a URL without a user and a password');
export const AbsolutePath = z.string().startsWith('/', 'Use an absolute path');
const OBJECT_NAME = /^[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?$/;
export const ObjectName = z.string().regex(OBJECT_NAME, 'Use a Kubernetes object name: lower-case letters, digits, "-" and "."');
export const PodUser = z
  .string()
  .regex(/^(any|[1-9][0-9]{0,9})$/, 'Use the id of a user other than root, such as "65532", or "any"')
  .transform((text): number | 'any' => (text === 'any' ? text : Number(text)))
  .refine((user) => user === 'any' || user <= 2_147_483_647, 'Use an id up to 2147483647');
export const GpuResources = z
  .string()
  .regex(
    /^(?:[a-z]+=[a-z0-9.-]+\/[a-z0-9._-]+)(?:,[a-z]+=[a-z0-9.-]+\/[a-z0-9._-]+)*$/,
    'Use backends and resource names, such as "cuda=nvidia.com/gpu,rocm=amd.com/gpu"',
  )
  .transform((text): Readonly<Record<string, string>> => Object.fromEntries(text.split(',').map((pair) => pair.split('=', 2))));
export const PortRange = z
  .string()
  .regex(/^[0-9]{4,5}-[0-9]{4,5}$/, 'Use the first and the last port, such as "18080-18979"')
  .transform((text) => ({ first: Number(text.slice(0, text.indexOf('-'))), last: Number(text.slice(text.indexOf('-') + 1)) }))
  .refine((range) => range.first < range.last && range.last <= 65_535, 'Use a first port below the last one, and a last port up to 65535');

/** A list separated by commas or spaces. `parse` returns undefined for an invalid entry; `rule` is the rule. */
const ListOf = (parse: (entry: string) => string | undefined, rule: string) =>
  z
    .string()
    .default('')
    .transform((text, context): readonly string[] => {
      const entries = text.split(/[\s,]+/).filter((entry) => entry !== '');
      const wrong = entries.find((entry) => parse(entry) === undefined);
      if (wrong !== undefined) context.addIssue({ code: 'custom', message: `${rule}, not "${wrong}"` });
      return entries.map((entry) => parse(entry) ?? entry);
    });
export const NamesOf = (kind: string) =>
  ListOf((entry) => (OBJECT_NAME.test(entry) ? entry : undefined), `Write names of ${kind}: lower-case letters, digits, "-" and "."`);
const HOST_NAME = /^(?:\*|(?:\*\.)?[A-Za-z0-9_](?:[A-Za-z0-9._-]{0,251}[A-Za-z0-9_])?\.?)$/;
export const HostNames = ListOf(
  (entry) => (HOST_NAME.test(entry) ? entry : undefined),
  'Write host names without scheme and port, such as "gpu.example.com" or "*.example.com"',
);
const ADDRESS = z.union([z.ipv4(), z.ipv6(), z.cidrv4(), z.cidrv6()]);
export const ProxyAddresses = ListOf(
  (entry) => (ADDRESS.safeParse(entry).success ? entry : undefined),
  'Write IP addresses or CIDR ranges, such as "127.0.0.1" or "10.0.0.0/8"',
);
/** Everyone, everyone of a domain, or one name. */
const IDENTITY = /^(?:\*|\*@[^\s@,*]+|[^\s,*]+)$/;
/** Lower-case identities with their scopes. */
export const IdentityRoles = ListOf(
  (entry) => {
    const [, identity = '', scope] = /^(.*)=(.*)$/.exec(entry) ?? [];
    return IDENTITY.test(identity) && isScope(scope) ? entry : undefined;
  },
  `Write an identity and its scope (${SCOPES.join(', ')}), such as "anna@example.com=admin", "*@example.com=v1-only" or "*=read-only"`,
).transform((entries): Readonly<Record<string, Scope>> => {
  const pairs = entries.map(
    (entry) => [entry.slice(0, entry.lastIndexOf('=')).toLowerCase(), entry.slice(entry.lastIndexOf('=') + 1)] as const,
  );
  return Object.fromEntries(pairs.filter((pair): pair is readonly [string, Scope] => isScope(pair[1])));
});
/** Browser extensions and desktop applications have schemes of their own, such as `chrome-extension` and `app`. */
const ORIGIN = /^[a-z][a-z0-9+.-]*:\/\/[^/?#@*\s"]+\/?$/i;
export const Origins = ListOf(
  (entry) => (ORIGIN.test(entry) && URL.canParse(entry) ? serialiseOrigin(entry) : undefined),
  'Write each origin as scheme, host and port, such as "https://chat.example.com" or "http://192.168.1.5:3001"',
);

export const LicenseNames = ListOf(
  (entry) => (/^[A-Za-z0-9][A-Za-z0-9._+-]{0,95}$/.test(entry) ? entry.toLowerCase() : undefined),
  'Write licences as the Hugging Face Hub names them, such as "llama3.2" or "gemma"',
);

/** Returns the origin as browsers send it. The URL standard defines none for schemes that browsers do not know. */
function serialiseOrigin(text: string): string {
  const { origin } = new URL(text);
  return origin === 'null' ? text.replace(/\/$/, '').toLowerCase() : origin;
}

/** What users of other tools write, and what to write here. */
const RUNTIME_ADVICE: Readonly<Record<string, string>> = {
  docker: 'Docker is not supported: use "podman", which runs the same images, or "process" (docs/podman.md)',
  kubernetes: 'Use "kube" for a cluster, not "kubernetes"',
  k8s: 'Use "kube" for a cluster, not "k8s"',
};

export function withAdvice(problem: SpecProblem, env: Readonly<Record<string, string | undefined>>): SpecProblem {
  const value = env['SVC_RUNTIME'] ?? '';
  const advice = problem.path[0] === 'SVC_RUNTIME' && Object.hasOwn(RUNTIME_ADVICE, value) ? RUNTIME_ADVICE[value] : undefined;
  return advice === undefined ? problem : { ...problem, message: advice };
}
