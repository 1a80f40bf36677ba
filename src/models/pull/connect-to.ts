/** Connections for downloads. */
import { Agent, EnvHttpProxyAgent, type buildConnector, type Dispatcher } from 'undici';

/**
 * Through the proxies of HTTP_PROXY, HTTPS_PROXY and NO_PROXY, if there are any. No proxy can reach the loopback address of this machine. A connection fails if nothing
 * is received for `silenceMs`. The caller destroys the dispatcher. `connect` opens the connections that need no proxy.
 */
export function connectTo(url: string, silenceMs: number, connect?: buildConnector.connector): Dispatcher {
  const options = { headersTimeout: silenceMs, bodyTimeout: silenceMs, ...(connect === undefined ? {} : { connect }) };
  const isLocal = /^(localhost|127\.[0-9.]+|\[::1\])$/.test(new URL(url).hostname);
  return isLocal ? new Agent(options) : new EnvHttpProxyAgent(options);
}
