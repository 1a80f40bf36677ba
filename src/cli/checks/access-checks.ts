/** Who reaches the service, where, and with which credential: for `svcctl doctor` and the report of the installer. */
import { existsSync } from 'node:fs';
import { hostname, networkInterfaces } from 'node:os';
import { connect } from 'node:tls';
import { describeListening, type ListenFacts } from '../../api/server/decide/host-names.ts';
import type { Settings } from '../../schema/settings/settings.ts';
import { isTable } from '../../schema/words/key-case.ts';
import { localAuthority } from '../connect/service-options.ts';

/** The result of one check of `svcctl doctor`. A check never throws and changes nothing. */
export interface Check {
  readonly name: string;
  readonly result: 'ok' | 'warn' | 'fail';
  readonly found: string;
  /** The fix. Empty if no action is needed. */
  readonly hint: string;
}

export const ok = (name: string, found: string): Check => ({ name, result: 'ok', found, hint: '' });
export const warn = (name: string, found: string, hint: string): Check => ({ name, result: 'warn', found, hint });
export const fail = (name: string, found: string, hint: string): Check => ({ name, result: 'fail', found, hint });

export interface AccessFacts extends ListenFacts {
  readonly authEnabled: boolean;
  /** The address of the proxy in front of the service. */
  readonly publicUrl: string | undefined;
  /** Undefined if nothing answers with TLS at `publicUrl`. */
  readonly certificate: { readonly issuer: string; readonly expiresAt: number } | undefined;
  /** Undefined if it is not installed. */
  readonly chat: { readonly url: string; readonly answers: boolean } | undefined;
  /** The entry of `/api/status`, if the service answers. */
  readonly limits?: unknown;
  readonly now: number;
}

const ANSWER_TIMEOUT_MS = 3000;
/** Where Caddy of the installer keeps the root of its own authority. */
const ROOT_CERTIFICATE = '/var/lib/caddy/.local/share/caddy/pki/authorities/local/root.crt';
const CHAT_UNIT = '/etc/systemd/system/svc-chat.service';
const CHAT_PORT = 3001;
const JOURNAL = 'Read "journalctl -u svc-proxy"';

/** What a running service says counts, because not every user may read its settings. */
export async function readAccess(settings: Settings): Promise<AccessFacts> {
  const { host, port } = settings.SVC_LISTEN;
  const addresses = Object.values(networkInterfaces()).flatMap((all) => all?.map(({ address }) => address) ?? []);
  const listening = describeListening(host, port, addresses);
  const isAll = host === '0.0.0.0' || host === '::';
  const urls = isAll ? [`http://${hostname()}:${port}`, ...listening.urls.slice(1)] : listening.urls;
  const local = `http://${localAuthority(settings.SVC_MANAGEMENT_LISTEN ?? settings.SVC_LISTEN)}`;
  const [status, config] = await Promise.all([readJson(`${local}/api/status`), readJson(`${local}/api/config/urls`)]);
  const configured = config?.['source'] === 'setting' ? config['dashboard_url'] : settings.SVC_PUBLIC_URL;
  const publicUrl = typeof configured === 'string' ? configured.replace(/\/$/, '') : undefined;
  const authEnabled = typeof status?.['auth_enabled'] === 'boolean' ? status['auth_enabled'] : settings.SVC_AUTH_ENABLED;
  const chatUrl = publicUrl === undefined ? urls[0]?.replace(/:\d+$/, `:${CHAT_PORT}/`) : `${publicUrl}/chat/`;
  const page = `http://${localAuthority({ host: authEnabled ? '127.0.0.1' : host, port: CHAT_PORT })}`;
  const answers = (await fetch(page, { signal: AbortSignal.timeout(ANSWER_TIMEOUT_MS) }).catch(() => undefined)) !== undefined;
  const certificate = publicUrl?.startsWith('https:') === true ? await readCertificate(new URL(publicUrl)) : undefined;
  const chat = existsSync(CHAT_UNIT) ? { url: chatUrl ?? '', answers } : undefined;
  return { ...listening, urls, authEnabled, publicUrl, certificate, chat, limits: status?.['limits'], now: Date.now() };
}

/** Undefined without an answer that is an object. */
export async function readJson(url: string): Promise<Readonly<Record<string, unknown>> | undefined> {
  try {
    const answer: unknown = await (await fetch(url, { signal: AbortSignal.timeout(ANSWER_TIMEOUT_MS) })).json();
    return isTable(answer) ? answer : undefined;
  } catch {
    return undefined;
  }
}

/** Asks the proxy of this machine, whatever the name leads to. */
async function readCertificate({ hostname: name, port }: URL): Promise<AccessFacts['certificate']> {
  const isAddress = /^[\d.]+$|^\[/.test(name);
  const target = isAddress ? { host: name.replaceAll(/[[\]]/g, '') } : { host: '127.0.0.1', servername: name };
  return await new Promise((resolve) => {
    const socket = connect({ ...target, port: port === '' ? 443 : Number(port), rejectUnauthorized: false, timeout: ANSWER_TIMEOUT_MS });
    const end = (found?: AccessFacts['certificate']): void => {
      socket.destroy();
      resolve(found);
    };
    socket.once('secureConnect', () => {
      const { issuer, valid_to: until } = socket.getPeerCertificate();
      end({ issuer: [issuer.O ?? issuer.CN].flat().join(', '), expiresAt: Date.parse(until) });
    });
    socket.once('error', () => end()).once('timeout', () => end());
  });
}

/** Pure. */
export function judgeAccess(facts: AccessFacts): readonly Check[] {
  const { chat } = facts;
  const callers = [judgeCallers(facts), ...judgeCertificate(facts), ...judgeLimits(facts.limits)];
  if (chat === undefined) return [...callers, ok('chat', 'No chat page')];
  if (chat.answers) return [...callers, ok('chat', chat.url)];
  return [...callers, warn('chat', `${chat.url} does not answer`, 'A new page needs a minute; then read "journalctl -u svc-chat"')];
}

function judgeCallers({ authEnabled, isLocal, publicUrl, urls }: AccessFacts): Check {
  const direct = urls.join(', ');
  if (authEnabled) {
    const proxied = publicUrl === undefined ? '' : `${publicUrl} with a password or a token; `;
    return ok('access', `${proxied}${direct} with a token`);
  }
  if (isLocal) return ok('access', `Programs on this machine only, without authentication: ${direct}`);
  return ok('access', `Everyone who reaches these addresses can use them and change slots, because authentication is off: ${direct}`);
}

/** `limits`: of `/api/status`. */
export function judgeLimits(limits: unknown): readonly Check[] {
  const { shared, gateways, problem } = isTable(limits) ? limits : {};
  if (shared === true) return [ok('limits', `${String(gateways)} gateways count callers together`)];
  if (typeof problem !== 'string') return [];
  const found = `The counts of callers are not shared, so each of ${String(gateways)} gateways enforces its part of each limit: ${problem}`;
  return [warn('limits', found, 'Check the server of SVC_LIMITS_URL, and read the log of the service')];
}

function judgeCertificate({ publicUrl, certificate, now }: AccessFacts): readonly Check[] {
  const name = 'certificate';
  if (publicUrl?.startsWith('https:') !== true) return [];
  if (certificate === undefined) {
    const hint = `${JOURNAL}. A public authority must reach port 80 or 443 of this machine under this name`;
    return [fail(name, `None for ${publicUrl}`, hint)];
  }
  const until = new Date(certificate.expiresAt).toISOString().slice(0, 10);
  if (certificate.expiresAt < now) return [fail(name, `Expired on ${until}`, JOURNAL)];
  const isOwn = certificate.issuer.startsWith('Caddy Local Authority');
  if (!isOwn) return [ok(name, `From "${certificate.issuer}", until ${until}`)];
  return [ok(name, `From the authority of this machine; clients need its root, ${ROOT_CERTIFICATE}`)];
}

/** The end of the installer's output. Every command works as it stands, on this machine. Pure. */
export function reportText(facts: AccessFacts, checks: readonly Check[]): string {
  const base = facts.authEnabled ? (facts.publicUrl ?? facts.url) : (facts.urls[0] ?? facts.url);
  const lines = [
    ['API', `${base}/v1`],
    ['Browser', `${base}/`],
    ...checks.map(({ name, found }) => [name.replace(/^./, (first) => first.toUpperCase()), found]),
  ];
  const problems = checks.filter(({ result }) => result !== 'ok').map(({ hint }) => `${hint}\n`);
  const close = `To close them to other machines: SVC_LISTEN=127.0.0.1:8080 in /etc/svc/api.env, then "systemctl restart svc-api".
To let strangers in with a password only: sudo bash /opt/svc/current/installer/install.sh --auth=basic
`;
  const token = facts.authEnabled ? `  TOKEN=$(sudo -u svc svcctl token create --label first)\n` : '';
  const credential = facts.authEnabled ? ' -H "authorization: Bearer $TOKEN"' : '';
  const body = '{"messages":[{"role":"user","content":"Hello"}]}';
  return `${lines.map(([name = '', text]) => `  ${name.padEnd(11)}  ${text}`).join('\n')}
  Files        Slots /etc/svc/slots, settings /etc/svc/api.env, log "journalctl -u svc-api"

${facts.authEnabled || facts.isLocal ? '' : close}${problems.join('')}
Next: svcctl get slots. Then ask the first question, which downloads the model of the slot "primary":
${token}  curl ${facts.url}/v1/chat/completions${credential} -H 'content-type: application/json' -d '${body}'
`;
}
