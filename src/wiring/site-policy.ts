/** Reads the machine's host names, which decide whether a request comes from this site. */
import { readFileSync } from 'node:fs';
import { hostname } from 'node:os';
import type { SitePolicy } from '../api/server/decide/decide-site.ts';
import { collectHostNames } from '../api/server/decide/host-names.ts';
import type { Settings } from '../schema/settings/settings.ts';

type SiteSettings = Pick<
  Settings,
  | 'SVC_ALLOWED_HOSTS'
  | 'SVC_CORS_ORIGINS'
  | 'SVC_LISTEN'
  | 'SVC_MANAGEMENT_LISTEN'
  | 'SVC_NAMESPACE'
  | 'SVC_PUBLIC_URL'
  | 'SVC_SERVICE_NAME'
>;

/** Mounted into pods together with the token. */
const NAMESPACE_FILE = '/var/run/secrets/kubernetes.io/serviceaccount/namespace';

/** Read once, at the start: a machine that gets another name needs a restart of the service. */
export function readSitePolicy(settings: SiteSettings, inCluster: boolean): SitePolicy {
  const { SVC_PUBLIC_URL: publicUrl, SVC_SERVICE_NAME: names, SVC_MANAGEMENT_LISTEN: management } = settings;
  const namespace = settings.SVC_NAMESPACE ?? readText(NAMESPACE_FILE).trim();
  const hosts = collectHostNames({
    hostname: hostname(),
    hostsFile: readText('/etc/hosts'),
    resolverFile: readText('/etc/resolv.conf'),
    listenHosts: [settings.SVC_LISTEN.host, ...(management === undefined ? [] : [management.host])],
    publicUrl,
    allowed: settings.SVC_ALLOWED_HOSTS,
    services: inCluster && namespace !== '' ? { names, namespace } : undefined,
  });
  return {
    hosts,
    publicOrigin: publicUrl === undefined ? undefined : new URL(publicUrl).origin,
    corsOrigins: new Set(settings.SVC_CORS_ORIGINS),
  };
}

function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}
