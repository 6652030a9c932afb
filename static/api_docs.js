// Shows the API description in Swagger UI. Reads the description's URL from `data-schema` of #api. Adds the CSRF
// token to requests that are sent from the page.

const place = document.querySelector('#api');
const token = () => document.cookie.match(/(?:^|; )(?:__Host-)?csrftoken=([^;]+)/)?.[1];

SwaggerUIBundle({
  url: place.dataset.schema,
  domNode: place,
  deepLinking: true,
  validatorUrl: null,
  requestInterceptor: request => {
    const value = token();
    if (value && new URL(request.url, location.href).origin === location.origin)
      request.headers['X-CSRFToken'] = value;
    return request;
  },
});
