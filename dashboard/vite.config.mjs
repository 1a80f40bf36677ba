/** How the dashboard is built. The output refers to its files from the root of the service, and contains no inline script or style, which the policy of the page forbids. */
export default {
  base: '/',
  publicDir: false,
  build: {
    target: 'es2023',
    assetsInlineLimit: 0,
    cssCodeSplit: false,
    modulePreload: { polyfill: false },
    emptyOutDir: true,
    reportCompressedSize: false,
  },
};
