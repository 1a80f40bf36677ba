/** The Hub: https://huggingface.co/docs/huggingface_hub/package_reference/environment_variables */
import { homedir } from 'node:os';
import path from 'node:path';
import type { Bearer } from '../download/open-url.ts';
import { readRegularFile } from '../../files/regular-file.ts';

export interface HubAccess {
  /** No trailing slash. */
  readonly endpoint: string;
  /** Called for each request, so a new token needs no restart. */
  readonly token: () => Promise<string | undefined>;
}

/** Only the Hub itself gets the token, wherever a file is sent from. */
export async function bearerOf({ endpoint, token }: HubAccess): Promise<Bearer | undefined> {
  const own = await token();
  return own === undefined ? undefined : { origin: new URL(endpoint).origin, token: own };
}

type Environment = Readonly<Record<string, string | undefined>>;

export const DEFAULT_ENDPOINT = 'https://huggingface.co';

/** Ignores an invalid `HF_ENDPOINT`. */
export function readHubAccess(env: Environment): HubAccess {
  const named = env['HF_ENDPOINT']?.trim().replace(/\/+$/, '') ?? '';
  const endpoint = /^https?:\/\//.test(named) && URL.canParse(named) ? named : DEFAULT_ENDPOINT;
  return { endpoint, token: () => readToken(env) };
}

export const huggingFaceHome = (env: Environment): string => valueOf(env, 'HF_HOME') ?? path.join(cacheHome(env), 'huggingface');

export function cacheHome(env: Environment): string {
  return valueOf(env, 'XDG_CACHE_HOME') ?? path.join(valueOf(env, 'HOME') ?? homedir(), '.cache');
}

/** Treats an empty variable as unset. https://specifications.freedesktop.org/basedir-spec/latest/ */
function valueOf(env: Environment, name: string): string | undefined {
  const value = env[name];
  return value === '' ? undefined : value;
}

async function readToken(env: Environment): Promise<string | undefined> {
  const direct = valueOf(env, 'HF_TOKEN') ?? valueOf(env, 'HUGGING_FACE_HUB_TOKEN');
  if (direct !== undefined) return clean(direct);
  const file = valueOf(env, 'HF_TOKEN_PATH') ?? path.join(huggingFaceHome(env), 'token');
  const text = await readRegularFile(file).catch(() => '');
  return clean(text);
}

/** Undefined if this is no valid token: a line break, for example, would end the header. */
function clean(text: string): string | undefined {
  const token = text.trim();
  return /^[\x21-\x7e]{1,512}$/.test(token) ? token : undefined;
}

export function fileUrl(endpoint: string, repo: string, commit: string, path: string): string {
  return `${endpoint}/${repo}/resolve/${commit}/${path.split('/').map(encodeURIComponent).join('/')}`;
}
