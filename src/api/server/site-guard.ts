/**
 * Refuses requests of web pages of other sites, and requests for management on the port for models.
 * `decide/decide-site.ts` decides; this file reads the facts and remembers accepted hosts, so that an ordinary
 * inference request costs one lookup.
 */
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { RequestHead } from '../../gateway/upstream/decide/request-head.ts';
import {
  decideSite,
  isForModelPort,
  MANAGEMENT_ONLY,
  OWN,
  type PortFacts,
  type SiteDecision,
  type SitePolicy,
} from './decide/decide-site.ts';
import type { Route } from './define-route.ts';

type SiteFacts = Pick<IncomingMessage, 'method' | 'url' | 'httpVersionMajor' | 'httpVersionMinor' | 'socket'>;

export type SiteGuard = ReturnType<typeof createSiteGuard>;

/** More different values of `Host` than a service has addresses, names and ports. */
const MAX_HOSTS = 256;
/** A name has at most 253 characters, and a port five. */
const MAX_HOST_LENGTH = 260;

/** `isModelPort`: the connection came through a port that serves models only. Default: every port serves all. */
export function createSiteGuard(policy: SitePolicy, isModelPort: (socket: Socket) => boolean = () => false) {
  const accepted = new Set<string>();

  function remember(host: string | undefined): void {
    if (host === undefined || host.length > MAX_HOST_LENGTH) return;
    if (accepted.size >= MAX_HOSTS) accepted.clear();
    accepted.add(host);
  }

  return {
    /** Pages of some other origin may use routes under `/v1`. */
    allowsOrigins: policy.corsOrigins.size > 0,
    check(req: SiteFacts, head: RequestHead, route: PortFacts & Pick<Route, 'cors'>): SiteDecision {
      const { anySite, cors } = route;
      if (!isForModelPort(route) && isModelPort(req.socket)) return MANAGEMENT_ONLY;
      if (anySite === true) return OWN;
      const isPlain = head.origin === undefined && head.fetchSite === undefined && head.hosts === 1 && isPath(req.url);
      if (isPlain && head.host !== undefined && accepted.has(head.host)) return OWN;
      const decision = decideSite(siteRequest(req, head), policy, cors === true);
      if (decision.kind === 'own' && isPlain && !head.isProgram) remember(head.host);
      return decision;
    },
  };
}

function siteRequest(req: Omit<SiteFacts, 'socket'>, head: RequestHead) {
  const target = isPath(req.url) ? undefined : /^[a-z][a-z0-9+.-]*:\/\/([^/?#]*)/i.exec(req.url ?? '')?.[1];
  const isHttp10 = req.httpVersionMajor === 1 && req.httpVersionMinor === 0;
  return { ...head, method: req.method ?? '', isHttp10, target };
}

const isPath = (url: string | undefined): boolean => url?.startsWith('/') === true;
