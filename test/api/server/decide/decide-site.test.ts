import { describe, expect, test } from '@jest/globals';
import { decideSite, type SitePolicy, type SiteRequest } from '../../../../src/api/server/decide/decide-site.ts';

const POLICY: SitePolicy = {
  hosts: { names: new Set(['localhost', 'gpu']), suffixes: [], any: false },
  publicOrigin: 'https://ai.example.com',
  corsOrigins: new Set(['http://chat.test:3001']),
};
const PROGRAM: SiteRequest = {
  method: 'POST',
  isHttp10: false,
  target: undefined,
  host: 'localhost:8080',
  hosts: 1,
  origin: undefined,
  fetchSite: undefined,
  fetchMode: undefined,
  fetchDest: undefined,
  isProgram: false,
};

/** `own`, `cors`, or the header at fault. */
function outcome(request: Partial<SiteRequest>, cors = false): string {
  const decision = decideSite({ ...PROGRAM, ...request }, POLICY, cors);
  return decision.kind === 'refuse' ? `${decision.code} ${decision.param}` : decision.kind;
}

const page = (fetchSite: string, fetchMode: string, fetchDest: string) => ({ fetchSite, fetchMode, fetchDest });

describe('a request', () => {
  test.each<[string, Partial<SiteRequest>, string]>([
    ['of a program', {}, 'own'],
    ['of a program, to an address', { host: '192.168.1.5:8080' }, 'own'],
    ['of a page of the service', { origin: 'http://localhost:8080', ...page('same-origin', 'cors', 'empty') }, 'own'],
    ['of its page, where the browser sends no Sec-Fetch', { host: 'gpu:8080', origin: 'http://gpu:8080' }, 'own'],
    ['of its page behind a proxy that ends TLS', { host: 'gpu', origin: 'https://gpu' }, 'own'],
    ['of its page on the standard port, written out', { host: 'gpu:80', origin: 'http://gpu' }, 'own'],
    ['of its page, in other case', { host: 'GPU:8080', origin: 'http://gpu:8080' }, 'own'],
    [
      'of its page behind a proxy that rewrites Host',
      { host: '127.0.0.1:8080', origin: 'https://ai.example.com', ...page('same-origin', 'cors', 'empty') },
      'own',
    ],
    ['typed into the address bar', { method: 'GET', ...page('none', 'navigate', 'document') }, 'own'],
    ['by a link on another page', { method: 'GET', ...page('cross-site', 'navigate', 'document') }, 'own'],
    ['by a link on another port', { method: 'GET', ...page('same-site', 'navigate', 'document') }, 'own'],
    [
      'by a form on another page',
      { origin: 'http://evil.test', ...page('cross-site', 'navigate', 'document') },
      'request.cross_site Origin',
    ],
    ['by a form without Origin', page('cross-site', 'navigate', 'document'), 'request.cross_site Sec-Fetch-Site'],
    ['of a frame', { method: 'GET', ...page('cross-site', 'navigate', 'iframe') }, 'request.cross_site Sec-Fetch-Site'],
    ['of an image', { method: 'GET', ...page('cross-site', 'no-cors', 'image') }, 'request.cross_site Sec-Fetch-Site'],
    ['of a script tag on another port', { method: 'GET', ...page('same-site', 'no-cors', 'script') }, 'request.cross_site Sec-Fetch-Site'],
    ['with an unknown Sec-Fetch-Site', { fetchSite: 'near-by' }, 'request.cross_site Sec-Fetch-Site'],
    ['with two Sec-Fetch-Site', { fetchSite: 'same-origin, cross-site' }, 'request.cross_site Sec-Fetch-Site'],
    ['of another page', { origin: 'http://evil.test' }, 'request.cross_site Origin'],
    ['of another port', { origin: 'http://localhost:3000' }, 'request.cross_site Origin'],
    ['of an opaque origin', { origin: 'null' }, 'request.cross_site Origin'],
    ['of an extension', { origin: 'chrome-extension://localhost:8080' }, 'request.cross_site Origin'],
    ['with an empty Origin', { origin: '' }, 'request.cross_site Origin'],
    ['with a path in Origin', { origin: 'http://localhost:8080/' }, 'request.cross_site Origin'],
    ['with two Origins', { origin: 'http://localhost:8080, http://evil.test' }, 'request.cross_site Origin'],
    [
      'whose Origin is its own and whose site is not',
      { origin: 'http://localhost:8080', fetchSite: 'cross-site' },
      'request.cross_site Sec-Fetch-Site',
    ],
    ['after DNS rebinding', { host: 'rebind.test:8080' }, 'request.cross_site Host'],
    ['after DNS rebinding, same origin', { host: 'rebind.test:8080', origin: 'http://rebind.test:8080' }, 'request.cross_site Host'],
    ['of svcctl through an API server', { host: 'k8s.example.com:6443', isProgram: true }, 'own'],
    ['that claims to be svcctl and is a page', { origin: 'http://evil.test', isProgram: true }, 'request.cross_site Origin'],
    ['without Host', { host: undefined, hosts: 0 }, 'request.invalid Host'],
    ['without Host in HTTP/1.0', { host: undefined, hosts: 0, isHttp10: true }, 'own'],
    [
      'without Host in HTTP/1.0, with an Origin',
      { host: undefined, hosts: 0, isHttp10: true, origin: 'http://a.test' },
      'request.cross_site Origin',
    ],
    ['with two equal Hosts', { hosts: 2 }, 'request.invalid Host'],
    ['with an empty Host', { host: '' }, 'request.invalid Host'],
    ['of a program with a malformed Host', { host: 'a b', isProgram: true }, 'request.invalid Host'],
    ['with an absolute target', { target: 'LOCALHOST:8080' }, 'own'],
    ['with another absolute target', { target: 'evil.test' }, 'request.invalid Host'],
    ['with a foreign target in HTTP/1.0', { host: undefined, hosts: 0, isHttp10: true, target: 'evil.test' }, 'request.cross_site Host'],
  ])('%s', (_what, request, expected) => {
    expect(outcome(request)).toBe(expected);
    // Listing origins changes nothing for all others.
    expect(outcome(request, true)).toBe(expected);
  });
});

describe('a page of an origin in SVC_CORS_ORIGINS', () => {
  const chat = { origin: 'http://chat.test:3001', ...page('cross-site', 'cors', 'empty') };

  test('may use only the routes that are open to it', () => {
    expect(outcome(chat, true)).toBe('cors');
    expect(outcome(chat, false)).toBe('request.cross_site Origin');
  });

  test('may not use them under an unknown name, nor from another port or scheme', () => {
    expect(outcome({ ...chat, host: 'rebind.test' }, true)).toBe('request.cross_site Host');
    expect(outcome({ ...chat, origin: 'http://chat.test' }, true)).toBe('request.cross_site Origin');
    expect(outcome({ ...chat, origin: 'https://chat.test:3001' }, true)).toBe('request.cross_site Origin');
  });
});
